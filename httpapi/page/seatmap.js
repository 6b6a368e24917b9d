// The states that a seat can be in, in the order of the legend: the letter that a
// snapshot has for it, and its shape around a point in a seat's square of 10.
const STATES = [
  { name: 'available', letter: 'a', shape: (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z` },
  { name: 'held', letter: 'h', shape: (x, y) => `M${x} ${y - 4.8}l4.8 4.8-4.8 4.8-4.8-4.8z` },
  { name: 'sold', letter: 's', shape: (x, y) => `M${x - 2} ${y - 2}h4v4h-4z` },
  { name: 'blocked', letter: 'b', shape: (x, y) => `M${x - 4.5} ${y - 1.5}h9v3h-9z` },
];

// PITCH is the distance of neighbours on the drawing, whatever the chart's unit is.
const PITCH = 10;

// SeatMap is an event's chart and the states of its seats at a version. Seats are
// numbers; what belongs to one is in arrays at its number.
class SeatMap {
  constructor(snapshot) {
    this.sections = [];
    this.rows = [];
    this.labels = []; // of the seats, such as A-1-1
    this.index = new Map(); // a label's seat
    this.row = []; // of a seat
    this.x = [];
    this.y = [];
    this.accessible = new Set();
    for (const s of snapshot.sections) this.addSection(s);
    this.state = new Uint8Array(this.labels.length);
    this.layOut();
    this.chart = SeatMap.chartOf(snapshot);
    this.restate(snapshot);
  }

  // chartOf tells charts apart: it's the snapshot without the states.
  static chartOf(snapshot) {
    return JSON.stringify(snapshot.sections, (name, value) => (name === 'states' ? undefined : value));
  }

  addSection(s) {
    const section = { id: s.section, name: s.name || '', tier: s.tier, rows: [], counts: [0, 0, 0, 0], seats: 0 };
    this.sections.push(section);
    for (const r of s.rows) {
      const row = { id: r.row, section, from: this.labels.length, to: this.labels.length + r.seats.length };
      row.aisles = new Set(r.aisles);
      section.rows.push(row);
      section.seats += r.seats.length;
      this.rows.push(row);
      for (const i of r.accessible || []) this.accessible.add(row.from + i);
      r.seats.forEach((seat, i) => {
        const label = `${section.id}-${row.id}-${seat}`;
        this.index.set(label, this.labels.length);
        this.labels.push(label);
        this.row.push(row);
        this.x.push(r.x[i]);
        this.y.push(r.y[i]);
      });
    }
  }

  // restate takes the states of a snapshot of the same chart. It returns the seats
  // that have changed.
  restate(snapshot) {
    const changed = [];
    let i = 0;
    for (const section of snapshot.sections) {
      for (const row of section.rows) {
        if (row.states.length !== row.seats.length) throw new Error('a row of the snapshot has too few states');
        for (const letter of row.states) {
          const state = STATES.findIndex((s) => s.letter === letter);
          if (state < 0) throw new Error('the snapshot has an unknown state');
          if (this.state[i] !== state) changed.push(i);
          this.state[i++] = state;
        }
      }
    }
    this.version = snapshot.version;
    this.count();
    return changed;
  }

  // apply takes changes in the order of their versions and skips those that it has.
  // It returns the seats that have changed, or null when one isn't on the chart: then
  // the chart has grown.
  apply(changes, version) {
    const changed = [];
    for (const change of changes) {
      if (change.version <= this.version) continue;
      const state = STATES.findIndex((s) => s.name === change.state);
      for (const label of change.seats) {
        const i = this.index.get(label);
        if (i === undefined || state < 0) return null;
        const counts = this.row[i].section.counts;
        counts[this.state[i]]--;
        counts[state]++;
        this.state[i] = state;
        changed.push(i);
      }
    }
    this.version = Math.max(this.version, version);
    return changed;
  }

  count() {
    for (const s of this.sections) s.counts.fill(0);
    for (let i = 0; i < this.state.length; i++) this.row[i].section.counts[this.state[i]]++;
  }

  // totals gives the number of seats in each state.
  totals() {
    return STATES.map((_, state) => this.sections.reduce((sum, s) => sum + s.counts[state], 0));
  }

  // tell describes a seat in words.
  tell(i) {
    const { section } = this.row[i];
    return [`Seat ${this.labels[i]}`, section.name, `tier ${section.tier}`, this.accessible.has(i) ? 'accessible' : '',
      STATES[this.state[i]].name].filter(Boolean).join(', ');
  }

  // tellSection describes a section in words.
  tellSection(s) {
    return [`Section ${s.id}`, s.name, `tier ${s.tier}`, `${s.counts[0]} of ${s.seats} available`].filter(Boolean).join(', ');
  }

  // layOut turns the chart's coordinates into those of the drawing. A chart with
  // seats on top of each other has no usable ones: it's drawn as a grid.
  layOut() {
    const places = new Set(this.x.map((x, i) => `${x},${this.y[i]}`));
    if (places.size < this.labels.length) this.grid();
    const left = this.x.reduce((a, b) => Math.min(a, b), Infinity);
    const top = this.y.reduce((a, b) => Math.min(a, b), Infinity);
    const scale = PITCH / this.pitch();
    for (let i = 0; i < this.labels.length; i++) {
      this.x[i] = Math.round((this.x[i] - left) * scale * 10) / 10;
      this.y[i] = Math.round((this.y[i] - top) * scale * 10) / 10;
    }
    for (const s of this.sections) s.box = this.box(s.rows);
    this.whole = { x: 0, y: 0, w: 0, h: 0 };
    for (const { box } of this.sections) {
      this.whole.w = Math.max(this.whole.w, box.x + box.w);
      this.whole.h = Math.max(this.whole.h, box.y + box.h);
    }
    this.whole = { x: -3 * PITCH, y: -5 * PITCH, w: this.whole.w + 5 * PITCH, h: this.whole.h + 6 * PITCH }; // names are above
  }

  grid() {
    let y = 0;
    for (const section of this.sections) {
      for (const row of section.rows) {
        let x = 0;
        for (let i = row.from; i < row.to; i++) {
          this.x[i] = x;
          this.y[i] = y;
          x += row.aisles.has(i - row.from) ? 2 : 1;
        }
        y++;
      }
      y += 2;
    }
  }

  // pitch is how near seats are to each other: nearer are only a few, which may
  // overlap.
  pitch() {
    const gaps = [];
    const gap = (i, j) => Math.hypot(this.x[i] - this.x[j], this.y[i] - this.y[j]);
    for (const section of this.sections) {
      section.rows.forEach((row, n) => {
        for (let i = row.from + 1; i < row.to; i++) gaps.push(gap(i - 1, i));
        const next = section.rows[n + 1];
        if (!next) return;
        let least = Infinity;
        for (let i = row.from; i < row.to; i++) least = Math.min(least, gap(i, next.from));
        for (let i = row.from; i < row.to; i++) gaps.push(least); // as many as within the row
      });
    }
    return Float64Array.from(gaps).sort()[Math.floor(gaps.length / 20)] || 1;
  }

  // box is the rectangle around the squares of some rows' seats.
  box(rows) {
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { from, to } of rows) {
      for (let i = from; i < to; i++) {
        x0 = Math.min(x0, this.x[i]);
        y0 = Math.min(y0, this.y[i]);
        x1 = Math.max(x1, this.x[i]);
        y1 = Math.max(y1, this.y[i]);
      }
    }
    return { x: x0 - PITCH / 2, y: y0 - PITCH / 2, w: x1 - x0 + PITCH, h: y1 - y0 + PITCH };
  }
}
