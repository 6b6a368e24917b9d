// How long things may take, in milliseconds.
const QUIET = 25000; // without a byte a stream is dead: one comes every 5 s when nothing happens
const OLD = 15000; // a map that nothing was heard of for so long is stale
const ASK = 30000; // for a snapshot
const POLL = 5000; // between snapshots
const POLLS = 12; // before streaming is tried again
const FAILURES = 3; // of the stream in a row, before snapshots are polled instead
const PAUSE = 1000; // after the first failure; each further one doubles it
const LONGEST = 30000; // wait between attempts
const LONGEST_ASKED = 300000; // wait that a server may ask for

// Refused is an answer that isn't what was asked for.
class Refused extends Error {
  constructor(response) {
    super(`HTTP status ${response.status}`);
    this.status = response.status;
    const after = response.headers.get('Retry-After');
    const seconds = /^\d+$/.test(after) ? Number(after) : (Date.parse(after) - Date.now()) / 1000;
    this.wait = seconds > 0 ? Math.min(seconds * 1000, LONGEST_ASKED) : 0;
  }
}

// Feed follows an event's seats for as long as the page lives: a snapshot, then
// changes as they come. What it hears goes to on:
//
//   on.snapshot(snapshot)    the whole map
//   on.changes(changes)      false when they don't fit the map: it's loaded again
//   on.state(state, error)   loading, live, polling, reconnecting, locked, missing
//   on.heard()               the server is there, and this is its newest word
class Feed {
  constructor(base, on) {
    Object.assign(this, { base, on, key: '', tag: '', version: 0, resumed: false, pause: PAUSE, tries: 0, broken: 0 });
    this.wake = () => {};
  }

  // run never returns. Whatever fails is tried again, after a wait that's longer each
  // time and different for every page: they don't come back all at once.
  async run() {
    for (;;) {
      try {
        if (!this.tag) await this.load();
        if (this.broken < FAILURES) await this.follow();
        else await this.poll();
      } catch (error) {
        await this.recover(error);
      }
    }
  }

  async recover(error) {
    const { status, wait } = error;
    if (status === 401 || status === 403) {
      this.on.state('locked', error);
      await new Promise((resolve) => { this.wake = resolve; });
      this.tries = 0;
      this.broken = 0;
      return;
    }
    if (status === 404) this.on.state('missing', error);
    else this.on.state('reconnecting', error);
    if (status === 410) this.tag = '';
    if (status === 410 && this.tries === 0) {
      this.tries = 1; // the first gap is a reason to hurry, the second one isn't
      return;
    }
    const backOff = Math.min(LONGEST, this.pause * 2 ** this.tries++);
    const least = status === 404 ? LONGEST : wait || 0;
    await this.sleep(least + backOff * (0.5 + Math.random() / 2), !wait);
  }

  // sleep waits; a wait that may be cut short ends when the page wakes the feed.
  sleep(time, short = true) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, time);
      this.wake = () => {
        if (!short) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  // unlock goes on with a key.
  unlock(key) {
    this.key = key;
    this.wake();
  }

  async ask(path, headers, signal) {
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    const response = await fetch(this.base + path, { headers, signal, cache: 'no-store' });
    if (response.ok || response.status === 304) return response;
    response.body?.cancel();
    throw new Refused(response);
  }

  // load gets the snapshot, if it isn't the one that the page has.
  async load() {
    const headers = this.tag ? { 'If-None-Match': this.tag } : {};
    const response = await this.ask('/seatmap', headers, AbortSignal.timeout(ASK));
    if (response.status !== 304) {
      const snapshot = await response.json();
      this.on.snapshot(snapshot);
      this.version = snapshot.version;
      this.tag = response.headers.get('ETag') || `"${snapshot.version}"`;
      this.resumed = false;
    }
    this.on.heard();
  }

  // poll gets snapshots for a while, where streams don't come through.
  async poll() {
    this.broken = FAILURES - 1; // then one attempt, also when the server is gone as a whole
    for (let n = 0; n < POLLS; n++) {
      await this.load();
      this.tries = 0;
      this.on.state('polling');
      await this.sleep(POLL * (0.9 + Math.random() / 5));
    }
  }

  // follow applies changes as they come, and throws when the stream ends. A stream
  // counts as broken unless a line of it came through.
  async follow() {
    const stop = new AbortController();
    let dog = setTimeout(() => stop.abort(), QUIET);
    this.cut = () => stop.abort();
    this.broken++;
    try {
      const headers = { Accept: 'text/event-stream' };
      if (this.resumed) headers['Last-Event-ID'] = String(this.version);
      const response = await this.ask(this.resumed ? '/changes' : `/changes?after=${this.version}`, headers, stop.signal);
      if (!response.body || !/^text\/event-stream\b/.test(response.headers.get('Content-Type'))) throw new Error('no stream');
      this.resumed = true;
      this.on.state('live');
      const lines = new Lines();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error('the stream was cut');
        clearTimeout(dog);
        dog = setTimeout(() => stop.abort(), QUIET);
        for (const line of lines.take(value)) this.line(line);
      }
    } catch (error) {
      if (error.status === 410) this.broken--; // it works, and says so
      throw error;
    } finally {
      clearTimeout(dog);
      stop.abort();
      this.event = null;
    }
  }

  // line takes one line of the stream, as the HTML standard says how.
  line(text) {
    this.broken = 0;
    this.tries = 0;
    this.on.heard();
    const event = (this.event ||= { name: 'message', data: [] });
    const [, field, value] = /^([^:]*):? ?([^]*)$/.exec(text);
    if (text === '') {
      this.event = null;
      if (event.name === 'changes' && event.data.length > 0) this.take(JSON.parse(event.data.join('\n')));
    } else if (field === 'event') event.name = value;
    else if (field === 'data') event.data.push(value);
    else if (field === 'retry' && /^\d+$/.test(value)) this.pause = Math.min(LONGEST, Math.max(50, Number(value)));
  }

  take(event) {
    if (!this.on.changes(event)) {
      this.tag = '';
      throw Object.assign(new Error('the chart has grown'), { wait: PAUSE });
    }
    this.version = Math.max(this.version, event.version);
    this.tag = `"${this.version}"`;
  }

  // nudge doesn't wait any longer: the network or the user is back.
  nudge(silent) {
    this.wake();
    if (silent && this.cut) this.cut();
  }
}

// Lines cuts text that comes in pieces into lines. It keeps the unfinished one.
class Lines {
  rest = '';

  take(text) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    return lines;
  }
}
