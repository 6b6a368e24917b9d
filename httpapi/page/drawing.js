const SVG = 'http://www.w3.org/2000/svg';

// MOST_SEATS is how many seats may be elements of their own. Of a larger event only
// the section that's looked at has them: the others have a path for each row and
// state, which is some thousands of elements instead of some ten thousands.
const MOST_SEATS = 2000;

// element makes an element of the drawing inside another.
function element(parent, name, attributes) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return parent.appendChild(e);
}

// Drawing shows a SeatMap. Elements of a section are groups: of a plain section a
// button, of a detailed one a grid of seats that arrow keys walk through.
class Drawing {
  // chosen is called with a section that the user goes to, or null for all.
  constructor(svg, tip, seats, chosen) {
    Object.assign(this, { svg, tip, seats, chosen, near: null, current: -1 });
    svg.replaceChildren();
    svg.style.aspectRatio = `${seats.whole.w} / ${seats.whole.h}`;
    this.all = seats.labels.length <= MOST_SEATS;
    this.groups = new Map();
    this.paths = new Map(); // a row's paths by state
    this.marks = new Map(); // a seat's element
    this.dirty = new Set(); // seats that look as they were
    for (const section of seats.sections) {
      this.groups.set(section, element(svg, 'g', { class: 'section', 'data-section': section.id }));
      this.draw(section);
    }
    for (const section of seats.sections) this.name(section);
    this.cells = new Map(); // seats by where they are
    for (let i = 0; i < seats.labels.length; i++) {
      const cell = this.cell(seats.x[i], seats.y[i]);
      if (this.cells.has(cell)) this.cells.get(cell).push(i);
      else this.cells.set(cell, [i]);
    }
    this.look(seats.whole);
  }

  // draw makes a section's elements anew.
  draw(section) {
    const { seats } = this;
    const group = this.groups.get(section);
    group.replaceChildren();
    element(group, 'rect', { class: 'ground', x: section.box.x, y: section.box.y, width: section.box.w, height: section.box.h });
    const detailed = this.all || this.near === section;
    group.setAttribute('role', detailed ? 'grid' : 'button');
    if (detailed) group.removeAttribute('tabindex');
    else group.setAttribute('tabindex', '0');
    for (const row of section.rows) {
      const line = detailed ? element(group, 'g', { role: 'row', 'aria-label': `Row ${row.id}` }) : group;
      this.paths.set(row, detailed ? null : STATES.map((s) => element(line, 'path', { class: s.name })));
      for (let i = row.from; i < row.to; i++) {
        this.marks.delete(i);
        if (detailed) this.marks.set(i, element(line, 'path', { role: 'gridcell', tabindex: '-1', 'data-seat': seats.labels[i] }));
      }
      if (!detailed) {
        this.drawRow(row);
        continue;
      }
      for (let i = row.from; i < row.to; i++) this.drawSeat(i);
      element(line, 'text', { class: 'row', x: seats.x[row.from] - PITCH / 2 - 1, y: seats.y[row.from] + 2, 'aria-hidden': 'true' }).textContent = row.id;
    }
    if (detailed) this.marks.get(section.rows[0].from).setAttribute('tabindex', '0'); // arrow keys lead on
    group.setAttribute('aria-label', seats.tellSection(section));
  }

  drawSeat(i) {
    const { seats } = this;
    const state = STATES[seats.state[i]];
    const mark = this.marks.get(i);
    mark.setAttribute('class', `seat ${state.name}${seats.accessible.has(i) ? ' accessible' : ''}`);
    mark.setAttribute('data-state', state.name);
    mark.setAttribute('aria-label', seats.tell(i));
    mark.setAttribute('d', state.shape(seats.x[i], seats.y[i]));
  }

  drawRow(row) {
    const { seats } = this;
    const shapes = STATES.map(() => '');
    for (let i = row.from; i < row.to; i++) shapes[seats.state[i]] += STATES[seats.state[i]].shape(seats.x[i], seats.y[i]);
    this.paths.get(row).forEach((path, state) => path.setAttribute('d', shapes[state]));
  }

  // name writes a section's name above it.
  name({ id, box }) {
    const size = Math.max(PITCH, Math.min(2 * PITCH, (1.4 * box.w) / id.length));
    element(this.svg, 'text', { x: box.x + box.w / 2, y: box.y - size / 3, 'font-size': size, 'stroke-width': size / 5, 'aria-hidden': 'true' })
      .textContent = id;
  }

  // changed draws seats again, with the next frame of the screen: all that come
  // until then together.
  changed(list) {
    if (this.dirty.size === 0 && list.length > 0) requestAnimationFrame(() => this.repaint());
    for (const i of list) this.dirty.add(i);
  }

  repaint() {
    const rows = new Set();
    const sections = new Set();
    for (const i of this.dirty) {
      sections.add(this.seats.row[i].section);
      if (this.marks.has(i)) this.drawSeat(i);
      else rows.add(this.seats.row[i]);
    }
    this.dirty.clear();
    for (const row of rows) this.drawRow(row);
    for (const s of sections) this.groups.get(s).setAttribute('aria-label', this.seats.tellSection(s));
    if (!this.tip.hidden) this.explain(this.current);
  }

  // look shows a rectangle of the map.
  look(box) {
    this.view = box;
    this.svg.setAttribute('viewBox', `${box.x} ${box.y} ${box.w} ${box.h}`);
    this.svg.classList.toggle('near', box.w < this.seats.whole.w);
    this.explain(-1);
  }

  // zoom shows more or less around a point of the map, the middle if none is given.
  zoom(factor, x = this.view.x + this.view.w / 2, y = this.view.y + this.view.h / 2) {
    const { view, seats: { whole } } = this;
    const f = Math.max(factor, (4 * PITCH) / Math.max(view.w, view.h));
    if (f > 1 && view.w * f >= whole.w && view.h * f >= whole.h) return this.look(whole);
    return this.look({ x: x - (x - view.x) * f, y: y - (y - view.y) * f, w: view.w * f, h: view.h * f });
  }

  // go shows one section with its seats, or all sections for null. A seat is focused
  // if one is given.
  go(section, seat = -1) {
    const before = this.near;
    this.near = section;
    if (!this.all && before !== section) {
      if (before) this.draw(before);
      if (section) this.draw(section);
    }
    if (section) {
      const { x, y, w, h } = section.box;
      this.look({ x: x - 2 * PITCH, y: y - 5 * PITCH, w: w + 4 * PITCH, h: h + 6 * PITCH });
    } else {
      this.look(this.seats.whole);
    }
    if (seat >= 0) this.focus(seat);
    this.chosen(section);
    return before;
  }

  // focus goes to a seat that has an element; of its section only that one is a stop
  // of the Tab key.
  focus(i) {
    for (const { from, to } of this.seats.row[i].section.rows) {
      for (let n = from; n < to; n++) if (this.marks.get(n).getAttribute('tabindex') === '0') this.marks.get(n).setAttribute('tabindex', '-1');
    }
    const mark = this.marks.get(i);
    mark.setAttribute('tabindex', '0');
    mark.focus();
  }

  // explain shows a seat's description beside it, or none for -1.
  explain(i) {
    this.current = i;
    this.tip.hidden = i < 0;
    if (i < 0) return;
    this.tip.textContent = this.seats.tell(i);
    const at = new DOMPoint(this.seats.x[i], this.seats.y[i]).matrixTransform(this.svg.getScreenCTM());
    const frame = this.svg.getBoundingClientRect();
    const left = Math.min(at.x - frame.left + 12, frame.width - this.tip.offsetWidth);
    const above = at.y - frame.top - this.tip.offsetHeight - 12;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${above >= 0 ? above : at.y - frame.top + 16}px`;
  }

  // point gives the place on the map under a pointer.
  point(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
  }

  cell(x, y) {
    return Math.round(x / PITCH) * 1e7 + Math.round(y / PITCH);
  }

  // seatAt finds the seat nearest to a place, -1 for none there.
  seatAt({ x, y }) {
    let [best, least] = [-1, 0.7 * PITCH];
    for (const dx of [-PITCH, 0, PITCH]) {
      for (const dy of [-PITCH, 0, PITCH]) {
        for (const i of this.cells.get(this.cell(x + dx, y + dy)) || []) {
          const away = Math.hypot(this.seats.x[i] - x, this.seats.y[i] - y);
          if (away < least) [best, least] = [i, away];
        }
      }
    }
    return best;
  }

  // beside finds the seat that an arrow key leads to from another; itself if none.
  beside(i, key) {
    const row = this.seats.row[i];
    const { rows } = row.section;
    switch (key) {
      case 'ArrowLeft': return Math.max(row.from, i - 1);
      case 'ArrowRight': return Math.min(row.to - 1, i + 1);
      case 'Home': return row.from;
      case 'End': return row.to - 1;
      default:
    }
    const next = rows[rows.indexOf(row) + (key === 'ArrowUp' ? -1 : 1)];
    if (!next) return i;
    const away = (n) => Math.hypot(this.seats.x[n] - this.seats.x[i], this.seats.y[n] - this.seats.y[i]);
    let best = next.from;
    for (let n = next.from; n < next.to; n++) if (away(n) < away(best)) best = n;
    return best;
  }
}
