'use strict';

// The arithmetic, apart from the page so that it can be tested without one.
const energy = {
  // Own weight of each node in the slices from..to (to not included).
  own(data, from, to) {
    const own = new Float64Array(data.parents.length);
    for (let slice = from; slice < to; slice++) {
      const pairs = data.slices[slice].own;
      for (let at = 0; at < pairs.length; at += 2) own[pairs[at]] += pairs[at + 1];
    }
    return own;
  },

  // Weight of each node with all above it. Parents come before their children.
  totals(data, own) {
    const totals = Float64Array.from(own);
    for (let node = totals.length - 1; node > 0; node--) totals[data.parents[node]] += totals[node];
    return totals;
  },

  // Rows by frame. A recursive function counts once: not where it is above itself.
  rows(data, own, totals) {
    const rows = new Map();
    for (let node = 1; node < own.length; node++) {
      if (totals[node] === 0) continue;
      const frame = data.node_frames[node];
      let row = rows.get(frame);
      if (!row) rows.set(frame, row = { frame, own: 0, total: 0 });
      row.own += own[node];
      let above = data.parents[node];
      while (above !== 0 && data.node_frames[above] !== frame) above = data.parents[above];
      if (above === 0) row.total += totals[node];
    }
    return [...rows.values()];
  },

  // Left edge of each node, in weight; siblings stand beside each other in their order.
  edges(data, totals) {
    const left = new Float64Array(totals.length);
    const next = new Float64Array(totals.length);
    for (let node = 1; node < totals.length; node++) {
      const parent = data.parents[node];
      left[node] = next[parent];
      next[parent] += totals[node];
      next[node] = left[node];
    }
    return left;
  },

  depths(data) {
    const depths = new Uint32Array(data.parents.length);
    for (let node = 1; node < depths.length; node++) depths[node] = depths[data.parents[node]] + 1;
    return depths;
  },

  // A number with the prefix that leaves one to three digits before the point; of `like`, where several
  // numbers are to have one prefix.
  text(value, unit, like = value) {
    const prefixes = [['k', 1e3], ['', 1], ['m', 1e-3], ['µ', 1e-6], ['n', 1e-9]];
    const size = Math.abs(like);
    const [prefix, factor] = size === 0 ? ['', 1] : prefixes.find(([, f]) => size >= f) || prefixes[4];
    const digits = size / factor >= 100 ? 1 : size / factor >= 10 ? 2 : 3;
    return `${(value / factor).toFixed(digits)} ${prefix}${unit}`;
  },

  // Round numbers from 0 to at most `highest`, about as many as wanted.
  ticks(highest, wanted) {
    const rough = highest / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    return Array.from({ length: Math.floor(highest / step) + 1 }, (_, index) => index * step);
  },
};

if (typeof document !== 'undefined') {
  const data = JSON.parse(document.getElementById('data').textContent);
  const byId = (id) => document.getElementById(id);
  const hasJoules = data.weight === 'joules';
  const amount = (weight) => (hasJoules ? energy.text(weight / data.unit, 'J') : `${Math.round(weight).toLocaleString('en')} ${data.weight}`);
  const percent = (share) => `${(share * 100).toFixed(1)}%`;
  const domainColors = ['#d9480f', '#1971c2', '#2f9e44', '#9c36b5', '#e8a200', '#0b7285'];
  const depths = energy.depths(data);
  const state = { from: 0, to: data.slices.length, zoom: 0, sort: 'own', search: '' };
  let own, totals, left, rows, boxes = [];

  const styles = () => getComputedStyle(document.documentElement);
  const color = (name) => styles().getPropertyValue(name).trim();

  // A canvas as sharp as the screen.
  function prepare(canvas, height) {
    const scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return [context, width];
  }

  function element(tag, text) {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  }

  function head() {
    byId('heading').textContent = data.heading;
    byId('how').textContent = data.how;
    const all = data.balance.reduce((sum, [, joules]) => sum + joules, 0);
    for (const [name, joules] of data.balance) {
      const item = element('li', `${name} `);
      item.append(element('b', energy.text(joules, 'J')), ` ${percent(joules / all)}`);
      byId('balance').append(item);
    }
    for (const warning of data.warnings) byId('warnings').append(element('li', `note: ${warning}`));
    data.domains.forEach((name, index) => {
      const item = element('span', '');
      const patch = document.createElement('i');
      patch.style.background = domainColors[index % domainColors.length];
      item.append(patch, name);
      byId('legend').append(item);
    });
    byId('power').hidden = data.slices.length < 2;
  }

  // ---- power over time ----

  const margin = { left: 58, right: 24, top: 8, bottom: 22 };
  const end = data.slices.length ? data.slices[data.slices.length - 1].end : 0;
  const watts = (slice) => slice.measured.map((joules) => joules / Math.max(slice.end - slice.start, 1e-9));

  function chart() {
    const height = 170;
    const [context, width] = prepare(byId('chart'), height);
    const highest = Math.max(...data.slices.map((slice) => watts(slice).reduce((a, b) => a + b, 0)), 1e-9) * 1.08;
    const x = (time) => margin.left + (width - margin.left - margin.right) * (time / end);
    const y = (power) => height - margin.bottom - (height - margin.top - margin.bottom) * (power / highest);
    for (const slice of data.slices) {
      let below = 0;
      watts(slice).forEach((power, index) => {
        context.fillStyle = domainColors[index % domainColors.length];
        context.fillRect(x(slice.start), y(below + power), x(slice.end) - x(slice.start) + 0.5, y(below) - y(below + power));
        below += power;
      });
    }
    context.fillStyle = color('--dim');
    context.font = '11px sans-serif';
    context.textAlign = 'right';
    for (const power of energy.ticks(highest, 4)) context.fillText(energy.text(power, 'W', highest), margin.left - 4, y(power) + 4);
    context.textAlign = 'center';
    for (const time of energy.ticks(end, 8).slice(1)) context.fillText(energy.text(time, 's', end), x(time), height - 6);
    if (!isWhole()) {
      const [start, stop] = times();
      context.globalAlpha = 0.55;
      context.fillStyle = color('--back');
      context.fillRect(margin.left, margin.top, x(start) - margin.left, height - margin.top - margin.bottom);
      context.fillRect(x(stop), margin.top, width - margin.right - x(stop), height - margin.top - margin.bottom);
      context.globalAlpha = 1;
      context.strokeStyle = color('--mark');
      context.strokeRect(x(start), margin.top, Math.max(x(stop) - x(start), 1), height - margin.top - margin.bottom);
    }
  }

  const isWhole = () => state.from === 0 && state.to === data.slices.length;
  const times = () => [data.slices[state.from].start, data.slices[state.to - 1].end];

  function describeSelection() {
    const chosen = data.slices.slice(state.from, state.to);
    const joules = chosen.reduce((sum, slice) => sum + slice.measured.reduce((a, b) => a + b, 0), 0);
    const [start, stop] = times();
    const power = stop > start ? `, ${energy.text(joules / (stop - start), 'W')}` : '';
    byId('selection').textContent = isWhole()
      ? `all: ${energy.text(joules, 'J')}${data.whole === 'all' ? '' : ` ${data.whole}`}${power}. Drag to choose a time; a double click or Escape takes all.`
      : `${start.toFixed(3)} s to ${stop.toFixed(3)} s: ${energy.text(joules, 'J')} ${data.whole}${power}; ${amount(totals[0])} of the program`;
  }

  // The slice at a place of the chart.
  function sliceAt(clientX) {
    const box = byId('chart').getBoundingClientRect();
    const share = (clientX - box.left - margin.left) / (box.width - margin.left - margin.right);
    const time = Math.min(Math.max(share, 0), 1) * end;
    let [low, high] = [0, data.slices.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (data.slices[middle].end < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  function brush() {
    const canvas = byId('chart');
    let anchor = null;
    const select = (a, b) => {
      state.from = Math.min(a, b);
      state.to = Math.max(a, b) + 1;
      update();
    };
    const all = () => select(0, data.slices.length - 1);
    canvas.addEventListener('pointerdown', (event) => {
      anchor = sliceAt(event.clientX);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (anchor !== null) select(anchor, sliceAt(event.clientX));
    });
    canvas.addEventListener('pointerup', () => { anchor = null; });
    canvas.addEventListener('dblclick', all);
    window.addEventListener('keydown', (event) => { if (event.key === 'Escape') all(); });
  }

  // ---- flamegraph ----

  // The root is at the top, so that the widest frames are seen first. Pixels.
  const rowHeight = 17;
  const thinnest = 0.8;
  const hash = (text) => [...text].reduce((sum, c) => (Math.imul(sum ^ c.codePointAt(0), 0x01000193)) >>> 0, 0x811c9dc5);
  function frameColor(frame) {
    const { name, class: kind } = data.frames[frame];
    const shade = hash(name) % 12;
    const hues = { n: name.includes('::') ? 48 : 8, i: 180, j: 120, k: 30, a: 0 };
    return kind === 'a' ? `hsl(0 0% ${72 + shade}%)` : `hsl(${hues[kind]} ${70 - shade}% ${62 + shade}%)`;
  }

  function matches(frame) {
    const { name, module } = data.frames[frame];
    const text = state.search.toLowerCase();
    return text !== '' && (name.toLowerCase().includes(text) || (module !== null && data.modules[module].toLowerCase().includes(text)));
  }

  function isAbove(node, below) {
    while (node > below) node = data.parents[node];
    return node === below;
  }

  function flame() {
    const zoom = totals[state.zoom] > 0 ? state.zoom : 0;
    const visible = [];
    const scaleOf = (width) => (totals[zoom] > 0 ? width / totals[zoom] : 0);
    const canvas = byId('flame');
    const scale = scaleOf(canvas.clientWidth);
    let deepest = 0;
    for (let node = 0; node < totals.length; node++) {
      const isBelow = isAbove(zoom, node);
      if (!isBelow && (totals[node] * scale < thinnest || !isAbove(node, zoom))) continue;
      visible.push([node, isBelow]);
      deepest = Math.max(deepest, depths[node]);
    }
    const height = (deepest + 1) * rowHeight + 2;
    const [context, width] = prepare(canvas, height);
    context.font = '12px ui-monospace, "DejaVu Sans Mono", Menlo, monospace';
    const letter = context.measureText('m').width;
    boxes = [];
    for (const [node, isBelow] of visible) {
      const x = isBelow ? 0 : (left[node] - left[zoom]) * scale;
      const w = isBelow ? width : totals[node] * scale;
      const y = depths[node] * rowHeight + 1;
      const frame = data.node_frames[node];
      context.globalAlpha = isBelow && node !== zoom ? 0.5 : 1;
      context.fillStyle = matches(frame) ? color('--mark') : frameColor(frame);
      context.fillRect(x, y, Math.max(w - 0.5, 0.5), rowHeight - 1);
      boxes.push({ node, x, y, w });
      const letters = Math.floor((w - 6) / letter);
      if (letters >= 3) {
        const { name } = data.frames[frame];
        context.fillStyle = '#111';
        context.fillText(name.length <= letters ? name : `${name.slice(0, letters - 1)}…`, x + 3, y + 12.5);
      }
    }
    context.globalAlpha = 1;
    byId('unzoom').hidden = zoom === 0;
  }

  function boxAt(event) {
    const place = byId('flame').getBoundingClientRect();
    const [x, y] = [event.clientX - place.left, event.clientY - place.top];
    return boxes.find((box) => x >= box.x && x < box.x + box.w && y >= box.y && y < box.y + rowHeight);
  }

  function describe(node) {
    const { name, module } = data.frames[data.node_frames[node]];
    const where = module === null ? '' : ` (${data.modules[module]})`;
    return `${name}${where}: ${amount(totals[node])}, ${percent(totals[node] / totals[0])}; itself ${amount(own[node])}`;
  }

  // ---- table ----

  const mostRows = 200;

  function table() {
    const whole = totals[0] || 1;
    const name = (row) => data.frames[row.frame].name;
    const orders = { own: (a, b) => b.own - a.own, total: (a, b) => b.total - a.total, name: (a, b) => (name(a) < name(b) ? -1 : 1) };
    orders.share = orders.own;
    const shown = rows
      .filter((row) => data.frames[row.frame].class !== 'a' && (state.search === '' || matches(row.frame)))
      .sort(orders[state.sort]);
    const body = document.querySelector('#rows tbody');
    body.replaceChildren(...shown.slice(0, mostRows).map((row) => {
      const { module } = data.frames[row.frame];
      const line = document.createElement('tr');
      const cells = [amount(row.own), percent(row.own / whole), amount(row.total), name(row), module === null ? '' : data.modules[module]];
      line.append(...cells.map((text) => element('td', text)));
      line.addEventListener('click', () => { byId('search').value = state.search = name(row); flame(); table(); });
      return line;
    }));
    byId('more').textContent = shown.length > mostRows ? `${shown.length - mostRows} more` : '';
    for (const button of document.querySelectorAll('#rows th button')) {
      button.toggleAttribute('aria-sort', button.dataset.sort === state.sort);
    }
  }

  function update() {
    own = energy.own(data, state.from, state.to);
    totals = energy.totals(data, own);
    left = energy.edges(data, totals);
    rows = energy.rows(data, own, totals);
    chart();
    describeSelection();
    flame();
    table();
  }

  head();
  brush();
  byId('flame').addEventListener('click', (event) => {
    const box = boxAt(event);
    if (box) { state.zoom = box.node; flame(); }
  });
  byId('flame').addEventListener('pointermove', (event) => {
    const box = boxAt(event);
    byId('detail').textContent = box ? describe(box.node) : '\u00a0';
  });
  byId('unzoom').addEventListener('click', () => { state.zoom = 0; flame(); });
  byId('search').addEventListener('input', (event) => { state.search = event.target.value; flame(); table(); });
  for (const button of document.querySelectorAll('#rows th button')) {
    button.addEventListener('click', () => { state.sort = button.dataset.sort; table(); });
  }
  window.addEventListener('resize', update);
  update();
} else {
  module.exports = energy;
}
