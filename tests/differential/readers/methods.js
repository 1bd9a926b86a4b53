// Answers each POST with the method that busboy and Express find in its content, or
// writes what FormData makes of names and values: `write`, as methods.py says.
'use strict';
const { createRequire } = require('node:module');
const http = require('node:http');
const load = createRequire(process.argv[3]);

const escape = (bytes) =>
  Buffer.from(bytes).toString('latin1').replace(/[^A-Za-z0-9]/g, (c) => '%' + c.charCodeAt(0).toString(16).padStart(2, '0'));

function serve(port) {
  const express = load('express');
  const busboy = load('busboy');
  const app = express();
  app.use(express.urlencoded({ extended: true }), express.json({ type: (req) => String(req.headers['content-type']).includes('json') }));
  app.post('/', (req, res) => {
    const answer = (found) => res.end(String(found === undefined ? '' : found));
    if (req.body !== undefined) {
      answer(req.body._method);
      return;
    }
    let found;
    const parser = busboy({ headers: req.headers });
    parser.on('field', (name, value) => { if (name === '_method') found = value; });
    parser.on('file', (name, file) => file.resume());
    parser.on('error', () => res.status(400).end());
    parser.on('close', () => answer(found));
    req.pipe(parser);
  });
  app.use((error, req, res, next) => res.status(400).end());
  http.createServer(app).listen(port, '127.0.0.1');
}

async function write() {
  // As axios writes forms.
  const Other = load('form-data');
  const names = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
  for (const [one, value, two, file] of names) {
    const form = new FormData();
    form.append(one, value);
    form.append(two, new Blob(['x\r\n\r\n--y'], { type: 'text/plain' }), file);
    const other = new Other();
    other.append(one, value);
    other.append(two, Buffer.from('x'), { filename: file });
    console.log(escape(other.getHeaders()['content-type']) + ' ' + escape(other.getBuffer()));
    for (const content of [form, new URLSearchParams([[one, value], [two, file]])]) {
      const response = new Response(content);
      console.log(escape(response.headers.get('content-type')) + ' ' + escape(await response.arrayBuffer()));
    }
    console.log(escape('application/json') + ' ' + escape(JSON.stringify({ [one]: [value, 1.5e30, null], [two]: { [file]: true } })));
  }
}

if (process.argv[2] === 'write') write();
else serve(Number(process.argv[2]));
