// Power over time, stacked, and the stretch of it that is chosen.
const timeline = {
  height: 176,
  margin: { left: 62, right: 14, top: 8, bottom: 22 },
  shown: 6,

  begin(app) {
    const canvas = look.byId('chart');
    let anchor = null;
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      anchor = timeline.sliceAt(app, event.clientX);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (anchor !== null) {
        const slice = timeline.sliceAt(app, event.clientX);
        timeline.choose(app, Math.min(anchor, slice), Math.max(anchor, slice) + 1);
      }
      timeline.hover(app, event);
    });
    const end = () => { anchor = null; };
    canvas.addEventListener('pointerup', end);
    canvas.addEventListener('pointercancel', end);
    canvas.addEventListener('pointerleave', () => app.tip(null));
    canvas.addEventListener('dblclick', () => timeline.choose(app, 0, app.model.slices));
    for (const side of ['from', 'to']) timeline.handle(app, side);
    look.byId('stack').addEventListener('change', (event) => app.choose({ stack: event.target.value }));
    look.byId('whole').addEventListener('click', () => timeline.choose(app, 0, app.model.slices));
  },

  // An end of the chosen time, which arrow keys and the pointer move.
  handle(app, side) {
    const handle = look.byId(side);
    const move = (slice) => {
      const { from, to } = app.state;
      if (side === 'from') timeline.choose(app, Math.min(Math.max(slice, 0), to - 1), to);
      else timeline.choose(app, from, Math.max(Math.min(slice, app.model.slices), from + 1));
    };
    handle.addEventListener('keydown', (event) => {
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
      const step = steps[event.key] * (event.shiftKey ? 10 : 1);
      if (event.key === 'Home') move(0);
      else if (event.key === 'End') move(app.model.slices);
      else if (step) move(app.state[side] + step);
      else return;
      event.preventDefault();
    });
    handle.addEventListener('pointerdown', (event) => handle.setPointerCapture(event.pointerId));
    handle.addEventListener('pointermove', (event) => {
      if (handle.hasPointerCapture(event.pointerId)) {
        move(timeline.sliceAt(app, event.clientX) + (side === 'to' ? 1 : 0));
      }
    });
  },

  choose(app, from, to) {
    if (from !== app.state.from || to !== app.state.to) app.choose({ from, to });
  },

  x(app, time, width) {
    const { left, right } = timeline.margin;
    const { edges, slices } = app.model;
    return left + (width - left - right) * (time - edges[0]) / Math.max(edges[slices] - edges[0], 1e-9);
  },

  sliceAt(app, clientX) {
    const box = look.byId('chart').getBoundingClientRect();
    const { left, right } = timeline.margin;
    const { edges, slices } = app.model;
    const share = Math.min(Math.max((clientX - box.left - left) / (box.width - left - right), 0), 1);
    const time = edges[0] + share * (edges[slices] - edges[0]);
    let [low, high] = [0, slices - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (edges[middle + 1] < time) low = middle + 1; else high = middle;
    }
    return low;
  },

  // What is stacked: names, colours, and joules of each slice. It depends on what is stacked alone, not on what is
  // chosen.
  series(app) {
    const { model, state: chosen } = app;
    if (app.stacked && app.stacked.of === chosen.stack) return app.stacked;
    const { data, leaves } = model;
    const found = { of: chosen.stack, rows: [] };
    const row = (name, color, joules, more = {}) => found.rows.push({ name, color, joules, ...more });
    if (chosen.stack === 'domain') {
      for (const { name, joules } of profile.domains(model)) {
        const place = found.rows.length;
        row(name, () => look.series(place), joules);
      }
    } else {
      const whole = profile.sums(model, 0, model.slices, null);
      const counted = (keys, counts) => new Int32Array(keys).map((key, leaf) => (counts[leaf] ? key : -1));
      const kinds = {
        function: () => [data.functions.name, model.own, counted(leaves.fn, leaves.inFunctions), whole.functions.own],
        thread: () => [data.threads, model.own, counted(leaves.thread, leaves.inTree), profile.threads(model, whole.leaves)],
        cpu: () => [data.cpus, profile.cpuSlices(model), Int32Array.from(data.cpus.keys()), profile.cpus(model, 0, model.slices)],
      };
      const [names, slices, keys, weights] = kinds[chosen.stack]();
      const most = chosen.stack === 'function' ? timeline.shown : 8;
      const { shown, series } = profile.stack(model, slices, keys, most, profile.heaviest(weights));
      shown.forEach((of, at) => row(names[of], () => look.series(at), series[at], { key: of }));
      const rest = [chosen.stack === 'function' ? 'other functions' : `other ${chosen.stack}s`, 'static', 'other processes', 'eprof', 'lost'];
      rest.forEach((part, at) => {
        const joules = series[shown.length + at];
        if (joules.some((of) => of > 0)) row(part, () => look.rest(at), joules, { isRest: at > 0 });
      });
    }
    return (app.stacked = found);
  },

  draw(app) {
    const { model, state: chosen } = app;
    if (model.slices < 2) return;
    const { height, margin } = timeline;
    const [context, width] = look.prepare(look.byId('chart'), height);
    const { rows } = timeline.series(app);
    const { edges } = model;
    const seconds = (slice) => Math.max(edges[slice + 1] - edges[slice], 1e-9);
    let highest = 0;
    for (let slice = 0; slice < model.slices; slice++) {
      highest = Math.max(highest, rows.reduce((sum, row) => sum + row.joules[slice], 0) / seconds(slice));
    }
    highest = (highest || 1) * 1.06;
    const bottom = height - margin.bottom;
    const x = (time) => timeline.x(app, time, width);
    const y = (watts) => bottom - (bottom - margin.top) * (watts / highest);
    context.font = look.sans;
    context.fillStyle = context.strokeStyle = look.colors.dim;
    context.textAlign = 'right';
    context.lineWidth = 1;
    for (const watts of format.ticks(highest, 4)) {
      context.fillText(format.tick(watts, 'W', highest), margin.left - 6, y(watts) + 4);
      context.globalAlpha = 0.18;
      context.fillRect(margin.left, Math.round(y(watts)), width - margin.left - margin.right, 1);
      context.globalAlpha = 1;
    }
    context.textAlign = 'center';
    const span = edges[model.slices] - edges[0];
    for (const time of format.ticks(span, Math.max(Math.floor(width / 130), 4)).slice(1)) {
      context.fillText(format.tick(time, 's', span), Math.min(x(edges[0] + time), width - 24), height - 6);
    }
    // No seams between neighbours.
    const scale = window.devicePixelRatio || 1;
    const onPixel = (place) => Math.round(place * scale) / scale;
    const isChosen = (slice) => slice >= chosen.from && slice < chosen.to;
    const colors = rows.map((row) => look.css(row.color()));
    for (let slice = 0; slice < model.slices; slice++) {
      const [left, right] = [onPixel(x(edges[slice])), onPixel(x(edges[slice + 1]))];
      context.globalAlpha = isChosen(slice) ? 1 : 0.25;
      let below = 0;
      rows.forEach((row, index) => {
        const watts = row.joules[slice] / seconds(slice);
        if (!(watts > 0)) return;
        context.fillStyle = colors[index];
        const top = y(below + watts);
        context.fillRect(left, top, right - left, y(below) - top);
        below += watts;
      });
    }
    context.globalAlpha = 1;
    // Between recordings nobody knows.
    context.fillStyle = look.colors.text;
    for (const gap of model.data.gaps || []) {
      for (let top = margin.top; top < bottom; top += 6) context.fillRect(onPixel(x(edges[0] + gap)), top, 1, 3);
    }
    timeline.place(app, x, bottom);
    timeline.legend(app);
  },

  // Puts the handles where the chosen time ends.
  place(app, x, bottom) {
    const { model, state: chosen } = app;
    for (const side of ['from', 'to']) {
      const handle = look.byId(side);
      const time = model.edges[chosen[side]];
      handle.style.left = `${x(time)}px`;
      handle.style.top = `${timeline.margin.top}px`;
      handle.style.height = `${bottom - timeline.margin.top}px`;
      handle.setAttribute('aria-valuemin', model.edges[0].toFixed(3));
      handle.setAttribute('aria-valuemax', model.edges[model.slices].toFixed(3));
      handle.setAttribute('aria-valuenow', time.toFixed(3));
      handle.setAttribute('aria-valuetext', `${time.toFixed(3)} seconds`);
    }
    look.byId('whole').hidden = profile.isWhole(model, chosen.from, chosen.to);
  },

  // Names, colours and sums of what is stacked, in the chosen time.
  legend(app) {
    const { model, state: chosen } = app;
    const { rows } = timeline.series(app);
    const sum = (row) => {
      let joules = 0;
      for (let slice = chosen.from; slice < chosen.to; slice++) joules += row.joules[slice];
      return joules;
    };
    const joules = rows.map(sum);
    const seconds = model.edges[chosen.to] - model.edges[chosen.from];
    const isNarrow = innerWidth < 640;
    // A function that ran half of the time has half of the watts here that it draws while it runs.
    const over = profile.isWhole(model, chosen.from, chosen.to) ? 'all of the recording' : `the chosen ${format.quantity(seconds, 's')}`;
    const about = look.element('li', { class: 'mean' }, `joules and mean power over ${over}${chosen.stack === 'domain' ? '' : ', not while running'}:`);
    look.byId('legend').replaceChildren(about, ...rows.map((row, index) => {
      const patch = look.element('i');
      patch.style.background = look.css(row.color());
      const text = [patch, look.element('span', { class: 'name' }, isNarrow && row.key !== undefined && chosen.stack === 'function' ? flame.short(row.name) : row.name),
        look.element('b', {}, format.quantity(joules[index], 'J')), look.element('span', { class: 'mean' }, seconds > 0 ? `mean ${format.quantity(joules[index] / seconds, 'W')}` : '')];
      const choose = chosen.stack === 'thread' ? () => app.choose({ thread: chosen.thread === row.key ? null : row.key })
        : chosen.stack === 'function' ? () => app.choose({ fn: row.key }) : null;
      if (row.key === undefined || !choose) return look.element('li', {}, look.element('span', { class: 'item', title: `${row.name}: joules, and mean watts over the chosen time` }, ...text));
      const isChosen = chosen.stack === 'thread' ? chosen.thread === row.key : chosen.fn === row.key;
      return look.element('li', {}, look.element('button', {
        type: 'button', class: 'item', title: `${row.name}: joules, and mean watts over the chosen time`, 'aria-pressed': String(isChosen), on: { click: choose },
      }, ...text));
    }));
    const [start, end] = [model.edges[chosen.from], model.edges[chosen.to]];
    const measured = Array.from({ length: chosen.to - chosen.from }, (_, at) => profile.measured(model, chosen.from + at))
      .reduce((a, b) => a + b, 0);
    const of = model.data.whole === 'all' ? '' : ` ${model.data.whole}`;
    const power = end > start ? `, ${format.quantity(measured / (end - start), 'W')}` : '';
    const thread = chosen.thread === null ? '' : `, in ${model.data.threads[chosen.thread]}`;
    look.byId('selection').textContent = profile.isWhole(model, chosen.from, chosen.to)
      ? `all ${format.quantity(end - start, 's')}: ${format.quantity(measured, 'J')}${of}${power}; ${app.amount(app.sums.all)} of the program${thread}`
      : `${start.toFixed(3)} s to ${end.toFixed(3)} s: ${format.quantity(measured, 'J')}${of}${power}; ${app.amount(app.sums.all)} of the program${thread}`;
  },

  hover(app, event) {
    const slice = timeline.sliceAt(app, event.clientX);
    const { edges } = app.model;
    const seconds = Math.max(edges[slice + 1] - edges[slice], 1e-9);
    const { rows } = timeline.series(app);
    const all = rows.reduce((sum, row) => sum + row.joules[slice], 0);
    const lines = rows.filter((row) => row.joules[slice] > 0).map((row) => `${format.quantity(row.joules[slice] / seconds, 'W', all / seconds)}  ${row.name}`);
    app.tip(event, `${edges[slice].toFixed(3)} s to ${edges[slice + 1].toFixed(3)} s: ${format.quantity(all / seconds, 'W')}, ${format.quantity(all, 'J')}`, lines.reverse());
  },
};
