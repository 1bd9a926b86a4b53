// What the parsers of Node and of its packages make of targets and queries.
// Each line of standard input is `P TARGET` or `Q QUERY`; the answer is one line:
// entries between tabs, `NAME PATH` or `NAME KEY VALUE`, every byte escaped but
// letters and digits.
'use strict';
const url = require('node:url');
const querystring = require('node:querystring');
const path = require('node:path');
const { createRequire } = require('node:module');
const load = createRequire(path.join(process.env.READER_TOOLS, 'node', 'package.json'));

const parseurl = createRequire(load.resolve('express'))('parseurl');
const express = load('express');
const Koa = load('koa');
const UrlParse = load('url-parse');
const fastQuery = load('fast-querystring');
const router = load('find-my-way');

const escape = (text) =>
  Buffer.from(String(text), 'utf8')
    .toString('latin1')
    .replace(/[^A-Za-z0-9]/g, (c) => '%' + c.charCodeAt(0).toString(16).padStart(2, '0'));

const BASES = ['http://localhost', 'https://origin.test/', 'file:///srv/www/x'];
const koa = new Koa();
let routed = null;
const find = router({ ignoreDuplicateSlashes: false });
find.on('GET', '/*', (req, res, params) => { routed = '/' + params['*']; });
const plain = express();
plain.use((req, res, next) => { routed = req.path; next('router'); });

const paths = {
  'node url.parse': (t) => url.parse(t).pathname,
  'node url.parse //': (t) => url.parse(t, false, true).pathname,
  'node url.resolve': (t) => url.parse(url.resolve('http://localhost/', t)).pathname,
  'node URL': (t) => new URL(t, BASES[0]).pathname,
  'node URL https': (t) => new URL(t, BASES[1]).pathname,
  'node URL file': (t) => new URL(t, BASES[2]).pathname,
  'node URL joined': (t) => new URL(BASES[0] + t).pathname,
  'node URL decoded': (t) => new URL(decodeURIComponent(t.split('?')[0]), BASES[0]).pathname,
  'node path.posix': (t) => path.posix.normalize(decodeURIComponent(t.split('?')[0])),
  'node path.win32': (t) => path.win32.normalize(decodeURIComponent(t.split('?')[0])).replace(/\\/g, '/'),
  'parseurl': (t) => parseurl({ url: t }).pathname,
  'koa': (t) => koa.createContext({ url: t, headers: {}, socket: {} }, {}).path,
  'find-my-way': (t) => { routed = null; find.lookup({ method: 'GET', url: t, headers: {} }, { end() {} }); return routed; },
  'express': (t) => { routed = null; plain.handle({ method: 'GET', url: t, headers: {} }, { setHeader() {}, end() {} }, () => {}); return routed; },
  'url-parse': (t) => new UrlParse(t, BASES[0]).pathname,
};

const flatten = (name, value, out) => {
  const leaves = (v) => {
    if (Array.isArray(v)) v.forEach(leaves);
    else if (v !== null && typeof v === 'object') Object.values(v).forEach(leaves);
    else if (v !== undefined) out.push([name, v === null ? '' : v]);
  };
  leaves(value);
};
const object = (parsed) => {
  const out = [];
  for (const [key, value] of Object.entries(parsed)) flatten(key, value, out);
  return out;
};
const versions = { 'qs': load('qs'), 'qs 6.9': load('qs-6.9'), 'qs 6.5': load('qs-6.5') };
const queries = {
  'node querystring': (q) => object(querystring.parse(q)),
  'node URLSearchParams': (q) => [...new URLSearchParams(q)],
  'node URL searchParams': (q) => [...new URL('/?' + q, BASES[0]).searchParams],
  'node url.parse': (q) => object(url.parse('/?' + q, true).query),
  'node querystring decoded': (q) => object(querystring.parse(decodeURIComponent(q))),
  'node URL searchParams decoded': (q) => [...new URL(decodeURIComponent('/?' + q), BASES[0]).searchParams],
  'qs decoded': (q) => object(versions.qs.parse(decodeURIComponent(q))),
  'fast-querystring': (q) => object(fastQuery.parse(q)),
};
const options = {
  '': {},
  ' dots': { allowDots: true },
  ' comma': { comma: true },
  ' express': { allowPrototypes: true },
  ' null': { plainObjects: true, strictNullHandling: true },
  ' sentinel': { charsetSentinel: true, charset: 'iso-8859-1', interpretNumericEntities: true },
  ' separators': { delimiter: /[;&]/, ignoreQueryPrefix: true },
  ' deep': { depth: 1, arrayLimit: 0, allowDots: true, decodeDotInKeys: true },
  ' flat': { depth: 0, parseArrays: false },
};
for (const [version, qs] of Object.entries(versions)) {
  for (const [name, option] of Object.entries(options)) {
    queries[version + name] = (q) => object(qs.parse(q, option));
  }
}

async function main() {
  const queryString = (await import(load.resolve('query-string'))).default;
  for (const arrayFormat of ['none', 'bracket', 'index', 'comma', 'separator', 'bracket-separator', 'colon-list-separator']) {
    queries['query-string ' + arrayFormat] = (q) => object(queryString.parse(q, { arrayFormat }));
  }
  const input = require('node:fs').readFileSync(0, 'latin1').split('\n');
  const out = [];
  for (const line of input) {
    if (line === '') continue;
    const [kind, text] = [line[0], line.slice(2)];
    const entries = [];
    for (const [name, read] of Object.entries(kind === 'P' ? paths : queries)) {
      try {
        const found = read(text);
        if (kind === 'P') {
          if (found !== null && found !== undefined) entries.push(escape(name) + ' ' + escape(found));
        } else {
          for (const [key, value] of found) entries.push([name, key, value].map(escape).join(' '));
        }
      } catch (error) {
        // What a parser refuses, it does not serve.
      }
    }
    out.push(entries.join('\t'));
  }
  process.stdout.write(out.join('\n') + '\n');
}
main();
