// The live page of a shared gateway. Hosts, paths and names of programs are what commands
// chose: they become text of nodes and nothing else.
'use strict';

const FLOWS_MAX = 200;
const byId = (id) => document.getElementById(id);
let state = null;
let dropped = 0;
let flows = [];
const shown = new Map();

// An element with a class, and texts or elements in it.
function make(name, kind, ...parts) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...parts.filter((part) => part !== null).map((part) =>
    part instanceof Node ? part : document.createTextNode(String(part))));
  return element;
}

function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return (unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)) + ' ' + units[unit];
}

function time(seconds) {
  if (seconds < 60) return seconds + ' s';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min';
  return Math.floor(seconds / 3600) + ' h ' + Math.floor(seconds / 60) % 60 + ' min';
}

const program = (path) => (path || '').split('/').pop();

// What a list shows is made anew only when it is another: a key that has the focus keeps it.
function fill(id, items, none) {
  const text = JSON.stringify(items.map((item) => item.key));
  if (shown.get(id) === text) return;
  shown.set(id, text);
  const section = byId(id);
  section.hidden = items.length === 0 && !none;
  const list = section.querySelector('ul, ol');
  list.replaceChildren(...items.map((item) => item.node()));
  if (items.length === 0 && none) list.append(make('li', 'none', none));
}

function of(sandbox) { return sandbox.name + ' #' + sandbox.number; }

function sum(sandboxes, key) {
  return sandboxes.reduce((total, own) => total + own.counts[key], 0);
}

function numbers(sandboxes) {
  const cells = [
    ['sandboxes', sandboxes.length + (byId('which').value ? 0 : state.not_listed)],
    ['allowed', sum(sandboxes, 'allowed')],
    ['denied', sum(sandboxes, 'denied'), 'warn'],
    ['findings', sum(sandboxes, 'findings'), 'bad'],
    ['alarms', sum(sandboxes, 'alarms'), 'bad'],
    ['sent', size(sum(sandboxes, 'up'))],
    ['received', size(sum(sandboxes, 'down'))],
    ['connections', sandboxes.reduce((total, own) => total + own.connections.used, 0)],
  ];
  byId('numbers').replaceChildren(...cells.map(([name, value, kind]) =>
    make('div', null, make('b', value ? kind : null, value), make('span', null, name))));
}

function groups(sandboxes, wanted) {
  const all = [];
  for (const own of sandboxes) {
    for (const group of own.groups) if (wanted(group.urgency)) all.push({ own, group });
  }
  all.sort((one, other) => other.group.count - one.group.count);
  return all.map(({ own, group }) => ({
    key: [own.number, group],
    node: () => make('li', null,
      make('p', group.urgency === 'denied' || group.urgency === 'passed' ? null : 'bad',
        group.subject),
      make('p', 'quiet', group.count + ' × ' + (group.program || 'somebody') + ' in ' + of(own) +
        (group.urgency === 'passed' ? ', let through' : '') + ': ' + group.because),
      ...group.flags.map((flag) => make('p', null, make('code', null, flag)))),
  }));
}

function beyond(sandboxes) {
  return sandboxes.filter((own) => own.beyond > 0).map((own) => ({
    key: [own.number, own.beyond],
    node: () => make('li', 'none', own.beyond + ' more denials of ' + of(own) + ' in the record'),
  }));
}

function each(sandboxes, list, node) {
  return sandboxes.flatMap((own) => list(own).map((item) => ({
    key: [own.number, item], node: () => node(own, item),
  })));
}

function sandbox(own) {
  const counts = own.counts;
  const who = own.token ? 'token' : 'user ' + own.uid + ', process ' + own.pid;
  return make('li', null,
    make('p', null, make('b', null, own.name), ' #' + own.number),
    make('p', 'quiet', who + (own.mode ? ', ' + own.mode : '')),
    make('p', 'quiet', counts.allowed + ' allowed, ',
      make('span', counts.denied ? 'warn' : null, counts.denied + ' denied'), ', ' +
      size(counts.up) + ' sent, ' + size(counts.down) + ' received, ' +
      own.connections.used + ' of ' + own.connections.limit + ' connections'));
}

function draw() {
  if (!state) return;
  const which = byId('which');
  const names = state.sandboxes.map((own) => ({ key: [own.number, own.name], own }));
  const text = JSON.stringify(names.map((name) => name.key));
  if (shown.get('which') !== text) {
    shown.set('which', text);
    const before = which.value;
    which.replaceChildren(new Option('all', ''),
      ...names.map(({ own }) => new Option(of(own), String(own.number))));
    which.value = names.some(({ own }) => String(own.number) === before) ? before : '';
  }
  const wanted = which.value;
  const sandboxes = state.sandboxes.filter((own) => !wanted || String(own.number) === wanted);
  numbers(sandboxes);
  fill('questions', each(sandboxes, (own) => own.questions.map(
    ({ id, subject, program: path }) => ({ id, subject, path })), question));
  fill('alarms', groups(sandboxes, (urgency) => urgency === 'alarm'));
  fill('found', each(sandboxes, (own) => own.counts.found, (own, found) => make('li', null,
    make('p', 'bad', found.name),
    make('p', 'quiet', found.action + ', in ' + found.place + ', to ' + found.target + ', by ' +
      of(own)))));
  fill('denied', groups(sandboxes, (urgency) => urgency !== 'alarm').concat(beyond(sandboxes)),
    'Nothing was denied.');
  fill('sandboxes', sandboxes.map((own) => ({
    key: [own.number, own.counts, own.connections, own.generation],
    node: () => sandbox(own),
  })).concat(state.not_listed && !wanted ? [{ key: state.not_listed,
    node: () => make('li', 'none', 'and ' + state.not_listed + ' other sandboxes') }] : []),
  'No sandbox is there.');
  fill('grants', each(sandboxes, (own) => own.grants, (own, grant) => make('li', null,
    make('code', null, grant.rule), make('p', 'quiet', of(own)))));
  fill('quotas', each(sandboxes, (own) => own.quotas, (own, quota) => {
    const bar = make('progress');
    bar.max = Math.max(quota.bytes, 1);
    bar.value = quota.spent;
    return make('li', null, make('p', null, quota.to + ': ' + size(quota.spent) + ' of ' +
      size(quota.bytes)), bar, make('p', 'quiet', make('code', null, quota.rule), ' ' + of(own)));
  }));
  flow(wanted);
}

function question(own, asked) {
  return make('li', null,
    make('p', null, asked.subject),
    make('p', 'quiet', program(asked.path) + ' in ' + of(own) + ' waits; `outgate approve` answers'));
}

function flow(wanted) {
  const list = flows.filter((event) => !wanted || String(event.session) === wanted);
  fill('flows', list.map((event) => ({
    key: event.n,
    node: () => {
      const kind = event.alarm ? 'bad' : event.verdict === 'deny' || event.monitor ? 'warn'
        : event.verdict === 'allow' ? 'good' : 'quiet';
      const word = event.alarm ? 'ALARM' : event.monitor ? 'passed' : event.verdict;
      const what = event.method ? event.method + ' ' + event.target + (event.path || '')
        : event.kind + ' ' + event.target;
      const why = event.finding || event.reason || '';
      const bytes = event.up || event.down
        ? size(event.up || 0) + ' sent, ' + size(event.down || 0) + ' received' : '';
      const more = [event.sandbox || 'gateway', program(event.program), why, bytes];
      return make('li', null, make('span', kind, word), make('span', null, what),
        make('span', 'quiet', more.filter(Boolean).join(', ')));
    },
  })), 'Nothing happened since this page was opened.');
  byId('dropped').textContent = dropped ? dropped + ' events were too many to be shown' : '';
}

function says(text, kind) {
  byId('state').className = kind || '';
  byId('state').textContent = text;
}

function listen() {
  const events = new EventSource('/events');
  events.addEventListener('state', (message) => {
    state = JSON.parse(message.data);
    const own = state.gateway;
    const record = own.record.state === 'failing' ? '; its record cannot be written' : '';
    says(own.state + ' for ' + time(own.uptime_seconds) + ', policy ' + own.policy.generation +
      ' with ' + own.policy.rules + ' rules' + record, own.state === 'ready' ? '' : 'bad');
    draw();
  });
  events.addEventListener('events', (message) => {
    const more = JSON.parse(message.data);
    dropped += more.dropped;
    flows = more.events.reverse().concat(flows).slice(0, FLOWS_MAX);
    draw();
  });
  events.onerror = () => {
    const over = events.readyState === EventSource.CLOSED;
    says(over ? 'not let in any more, or too many pages are open: `outgate gateway page` gives ' +
      'another address' : 'the gateway does not answer; trying again', 'bad');
  };
}

byId('which').addEventListener('change', draw);
listen();
