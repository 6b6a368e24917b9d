const $ = (id) => document.getElementById(id);

// The page's own address, .../events/{event}/map, tells which event it shows and
// where the API is.
const [, root, event] = /^(.*)\/events\/([^/]+)\/map$/.exec(location.pathname);

const KEY = 'tierledger.key'; // in the tab's storage
const storage = {
  get() { try { return sessionStorage.getItem(KEY) || ''; } catch { return ''; } },
  set(key) { try { sessionStorage.setItem(KEY, key); } catch { /* then it's asked for again */ } },
};

const TEXTS = {
  loading: 'Loading the map',
  live: 'Live: changes show as they happen',
  polling: `Live changes don't come through: the map is refreshed every ${POLL / 1000} s`,
  reconnecting: 'Reconnecting',
  stale: 'Stale: the server has not been heard of for a while. Reconnecting',
  locked: 'A key is needed',
  missing: 'There is no such event, or it has no seats',
};

let seats = null; // what the map shows
let drawing = null;
let state = 'loading';
let heard = 0; // when the server was last heard of, by performance.now()
const cells = new Map(); // a section's cells in the table
const counts = legend();

// legend makes a line for each state and returns where its count goes.
function legend() {
  const line = (shape, style, name) => {
    const li = $('legend').appendChild(document.createElement('li'));
    const svg = element(li, 'svg', { viewBox: '-6 -6 12 12', 'aria-hidden': 'true' });
    element(svg, 'path', { d: shape(0, 0), class: style });
    const count = document.createElement('b');
    count.dataset.count = style;
    li.append(name, count);
    return count;
  };
  const found = STATES.map((s) => line(s.shape, s.name, s.name));
  line(STATES[0].shape, 'ring', 'with a border: accessible').remove();
  return found;
}

// show puts a snapshot on the page. On the same chart only what has changed is
// drawn, so that the user's place on the map stays.
function show(snapshot) {
  if (seats && seats.chart === SeatMap.chartOf(snapshot)) {
    const changed = seats.restate(snapshot);
    drawing.changed(changed);
  } else {
    seats = new SeatMap(snapshot);
    drawing = new Drawing($('map'), $('tip'), seats, chosen);
    $('section').replaceChildren(new Option('All', ''), ...seats.sections.map((s) => new Option([s.id, s.name].filter(Boolean).join(': '), s.id)));
    cells.clear();
    $('sections').replaceChildren(...seats.sections.map(tableRow));
  }
  $('none').hidden = seats.labels.length > 0;
  $('main').hidden = false;
  $('unlock').hidden = true;
  tally(snapshot.as_of);
}

function tableRow(section) {
  const row = document.createElement('tr');
  const head = document.createElement('th');
  head.scope = 'row';
  head.textContent = section.id;
  const add = (text) => {
    row.insertCell().textContent = text;
    return row.lastChild;
  };
  row.append(head);
  add(section.name);
  add(section.tier);
  cells.set(section, STATES.map(() => add('')));
  return row;
}

// tally brings the numbers beside the map up to date.
function tally(asOf) {
  const set = (e, n) => { if (e.textContent !== String(n)) e.textContent = n; };
  seats.totals().forEach((n, i) => set(counts[i], n));
  for (const s of seats.sections) s.counts.forEach((n, i) => set(cells.get(s)[i], n));
  const time = new Date(asOf);
  $('as-of').dateTime = asOf;
  $('as-of').textContent = time.toLocaleTimeString();
  $('as-of').title = time.toString();
  $('version').textContent = seats.version;
  $('when').hidden = false;
}

function chosen(section) {
  $('section').value = section ? section.id : '';
}

// tell shows how the page is connected. What is reconnecting for long is stale.
function tell() {
  const silent = performance.now() - heard;
  const shown = state === 'reconnecting' && (!seats || silent > OLD) ? (seats ? 'stale' : 'loading') : state;
  const text = TEXTS[shown];
  if ($('link').textContent !== text) $('link').textContent = text;
  $('link').dataset.state = shown;
  document.body.toggleAttribute('data-old', seats !== null && shown !== 'live' && shown !== 'polling' && silent > OLD);
  if (seats) $('heard').textContent = `The server's last word came ${silent < 2000 ? 'just now' : `${Math.round(silent / 1000)} s ago`}.`;
}

const feed = new Feed(`${root}/v1/events/${event}`, {
  snapshot: show,
  changes(change) {
    const changed = seats.apply(change.changes, change.version);
    if (!changed) return false;
    drawing.changed(changed);
    tally(change.as_of);
    return true;
  },
  state(now, error) {
    state = now;
    if (now === 'locked') {
      $('why').textContent = error.status === 403 ? 'This key may not see the map.'
        : feed.key ? 'This key is not known.' : 'This server shows the map to callers with a key.';
      $('unlock').hidden = false;
    }
    tell();
  },
  heard() { heard = performance.now(); },
});

$('unlock').addEventListener('submit', (e) => {
  e.preventDefault();
  storage.set($('key').value.trim());
  feed.unlock($('key').value.trim());
  $('key').value = '';
});

// The pointer: it tells what a seat is, goes to a section, drags the map.
let drag = null;
$('map').addEventListener('pointerdown', (e) => {
  drag = { x: e.clientX, y: e.clientY, view: drawing.view, moved: false };
});
$('map').addEventListener('pointermove', (e) => {
  if (!drag || !(e.buttons & 1)) {
    drawing.explain(drawing.seatAt(drawing.point(e)));
    return;
  }
  const { a } = $('map').getScreenCTM();
  const [dx, dy] = [e.clientX - drag.x, e.clientY - drag.y];
  if (!drag.moved && Math.hypot(dx, dy) < 6) return;
  drag.moved = true;
  if (!$('map').classList.contains('near')) return; // all is in sight
  $('map').setPointerCapture(e.pointerId);
  drawing.look({ ...drag.view, x: drag.view.x - dx / a, y: drag.view.y - dy / a });
});
$('map').addEventListener('pointerleave', () => drawing.explain(-1));
$('map').addEventListener('click', (e) => {
  if (drag?.moved) return;
  const i = drawing.seatAt(drawing.point(e));
  const id = e.target.closest('.section')?.dataset.section;
  const section = i >= 0 ? seats.row[i].section : seats.sections.find((s) => s.id === id);
  if (section && section !== drawing.near) drawing.go(section, i);
  if (i >= 0) drawing.explain(i);
});
$('map').addEventListener('wheel', (e) => {
  if (!e.ctrlKey && !e.metaKey) return; // the page scrolls
  e.preventDefault();
  const at = drawing.point(e);
  drawing.zoom(e.deltaY > 0 ? 1.25 : 0.8, at.x, at.y);
}, { passive: false });

// The keyboard.
$('map').addEventListener('focusin', (e) => drawing.explain(seats.index.get(e.target.dataset.seat) ?? -1));
$('map').addEventListener('focusout', () => drawing.explain(-1));
$('map').addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const seat = seats.index.get(e.target.dataset.seat);
  const section = seats.sections.find((s) => s.id === e.target.dataset.section);
  switch (e.key) {
    case 'Enter':
    case ' ':
      if (!section) return;
      drawing.go(section, section.rows[0].from);
      break;
    case 'ArrowLeft': case 'ArrowRight': case 'ArrowUp': case 'ArrowDown': case 'Home': case 'End':
      if (seat === undefined) return;
      drawing.focus(drawing.beside(seat, e.key));
      break;
    case 'Escape': {
      const before = drawing.go(null);
      if (before && !drawing.all) drawing.groups.get(before).focus();
      break;
    }
    case '+': drawing.zoom(0.7); break;
    case '-': drawing.zoom(1 / 0.7); break;
    default: return;
  }
  e.preventDefault();
});

$('section').addEventListener('change', (e) => drawing.go(seats.sections.find((s) => s.id === e.target.value) || null));
$('in').addEventListener('click', () => drawing.zoom(0.7));
$('out').addEventListener('click', () => drawing.zoom(1 / 0.7));
$('whole').addEventListener('click', () => drawing.go(null));

// A page that slept, or was without a network, doesn't wait for its timers.
addEventListener('online', () => feed.nudge(true));
addEventListener('pageshow', (e) => { if (e.persisted) feed.nudge(true); });
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) feed.nudge(performance.now() - heard > OLD);
});

$('event').textContent = decodeURIComponent(event);
document.title = `Seats of ${decodeURIComponent(event)}`;
setInterval(tell, 1000);
feed.key = storage.get();
feed.run();
