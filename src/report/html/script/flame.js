// The call tree as boxes: from the root down or up, or around one function.
const flame = {
  row: 18,
  // Pixels.
  thinnest: 0.6,
  focused: null,
  // What was drawn last.
  seen: null,
  places: [],

  begin(app) {
    const canvas = look.byId('flame');
    canvas.addEventListener('click', (event) => {
      const place = flame.at(event);
      if (!place) return;
      canvas.focus({ preventScroll: true });
      flame.focused = place;
      flame.open(app, place);
    });
    canvas.addEventListener('pointermove', (event) => {
      const place = flame.at(event);
      canvas.style.cursor = place ? 'pointer' : 'default';
      if (place) app.tip(event, ...flame.describe(app, place));
      else app.tip(null);
    });
    canvas.addEventListener('pointerleave', () => app.tip(null));
    canvas.addEventListener('keydown', (event) => flame.key(app, event));
    canvas.addEventListener('focus', () => flame.draw(app));
    canvas.addEventListener('blur', () => { app.tip(null); flame.draw(app); });
    look.byId('view').addEventListener('change', (event) => app.choose({ view: event.target.value }));
    look.byId('color').addEventListener('change', (event) => app.choose({ color: event.target.value }));
  },

  // A click: an unopened run of callers is opened, a box becomes the widest, in a sandwich the middle.
  open(app, place) {
    const { box, part } = place;
    if (part !== 'tree') {
      app.choose({ fn: place.fn });
      return;
    }
    const opened = new Set(app.state.opened);
    if (box.chain.length > 1) {
      opened.add(box.node);
      app.choose({ opened });
    } else if (box.isOpened && app.state.zoom === box.node) {
      opened.delete(box.node);
      app.choose({ opened, zoom: app.model.parent[box.node] });
    } else {
      app.choose({ zoom: box.node, fn: place.fn || app.state.fn });
    }
  },

  // Boxes in pixels, for what is chosen.
  arrange(app, width) {
    const { model, state: chosen, sums } = app;
    const place = (tree, top, part, rowOf) => {
      const scale = tree.total[top] > 0 ? width / tree.total[top] : 0;
      const { boxes, rows } = layout.boxes(tree, top, part === 'tree' ? chosen.opened : new Set(), scale > 0 ? flame.thinnest / scale : 0);
      return [rows, boxes.map((box) => ({
        box, part, tree, x: box.x * scale, w: box.weight * scale, y: rowOf(box.row, rows) * flame.row, fn: tree.fn[box.node],
      }))];
    };
    if (chosen.view === 'sandwich' && chosen.fn !== null) {
      const callers = layout.callers(model, sums.nodes.total, chosen.fn);
      const callees = layout.callees(model, sums.nodes.total, chosen.fn);
      const [above, up] = place(callers, 0, 'callers', (row, rows) => rows - 1 - row);
      const [below, down] = place(callees, 0, 'callees', (row) => above - 1 + row);
      // The function itself is in both.
      return [above + below - 1, [...up.filter(({ box }) => box.node !== 0), ...down]];
    }
    const tree = app.tree;
    tree.total = sums.nodes.total;
    const zoom = sums.nodes.total[chosen.zoom] > 0 ? chosen.zoom : 0;
    const isUp = chosen.view === 'flame';
    return place(tree, zoom, 'tree', (row, rows) => (isUp ? rows - 1 - row : row));
  },

  draw(app) {
    const canvas = look.byId('flame');
    const width = look.widths.flame;
    const needsFunction = app.state.view === 'sandwich' && app.state.fn === null;
    look.byId('choose').hidden = !needsFunction;
    const [rows, places] = flame.arrange(app, width);
    flame.places = places;
    const [context] = look.prepare(canvas, Math.max(rows, 1) * flame.row + 2);
    context.font = look.mono;
    const letter = context.measureText('m').width;
    const colors = new Map();
    const colorOf = (fn, node) => {
      const color = flame.color(app, fn, node);
      return { css: look.css(color), on: look.on(color) };
    };
    for (const place of places) {
      const { x, y, w, fn, box } = place;
      // By watts and by change each place of the tree has its own color, else each function.
      const node = flame.nodeOf(place);
      const key = node !== null && ['watts', 'change'].includes(app.state.color) ? -1 - node : fn;
      let color = colors.get(key);
      if (color === undefined) colors.set(key, color = colorOf(fn, node));
      const isMatch = app.found.any && box.chain.some((node) => app.found.matches[place.tree.fn[node]]);
      context.globalAlpha = app.found.any && !isMatch ? 0.35 : 1;
      context.fillStyle = color.css;
      context.fillRect(x, y + 1, Math.max(w - 0.6, 0.4), flame.row - 1);
      context.globalAlpha = 1;
      if (isMatch) {
        context.fillStyle = look.colors.mark;
        context.fillRect(x, y + flame.row - 3, Math.max(w - 0.6, 0.4), 3);
      }
      if (box.chain.length > 1) {
        // Another edge: there is more in it.
        context.fillStyle = color.on;
        context.globalAlpha = 0.35;
        for (let at = x; at < x + w - 4; at += 6) context.fillRect(at, y + flame.row - 2, 3, 1);
        context.globalAlpha = 1;
      }
      const letters = Math.floor((w - 8) / letter);
      if (letters >= 3) {
        context.fillStyle = app.found.any && !isMatch ? look.colors.dim : color.on;
        context.fillText(flame.label(app, place, letters), x + 4, y + 13);
      }
    }
    flame.drawFocus(app, context);
    flame.showRoot(app, rows);
    flame.trail(app);
    flame.scale(app);
  },

  // Another picture is seen from where it begins: at its upper end, at its lower one, or around the middle.
  showRoot({ state: { view, zoom, fn } }, rows) {
    const seen = view === 'sandwich' ? `${view} ${fn}` : `${view} ${zoom}`;
    const before = flame.seen;
    flame.seen = seen;
    // What was opened with the page is at its upper end already.
    if (seen === before || (before === null && view === 'icicle')) return;
    const scroll = look.byId('scroll');
    const middle = flame.places.find(({ part, box }) => part === 'callees' && box.node === 0);
    scroll.scrollTop = view === 'flame' ? rows * flame.row : view === 'sandwich' && middle ? middle.y + flame.row - scroll.clientHeight / 2 : 0;
  },

  // The box that keys move, where the canvas has the focus.
  drawFocus(app, context) {
    if (document.activeElement !== look.byId('flame')) return;
    const { focused } = flame;
    flame.focused = flame.places.find((place) => focused && place.part === focused.part && place.box.node === focused.box.node)
      || flame.places[0] || null;
    if (!flame.focused) return;
    const { x, y, w } = flame.focused;
    context.strokeStyle = look.colors.text;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(w - 2, 2), flame.row - 1);
  },

  cut(text, letters) {
    return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
  },

  // What a box says in so many letters. Of a name that does not fit, its last part tells more than its first.
  label(app, { box, tree, fn, part }, letters) {
    const { name } = app.model.data.functions;
    const short = (node) => flame.short(name[tree.fn[node]]);
    const arrow = part === 'callers' ? ' ‹ ' : ' › ';
    if (box.chain.length > 1) return flame.cut(`▸ ${box.chain.map(short).join(arrow)}`, letters);
    const before = box.isOpened ? '▾ ' : '';
    const whole = before + (fn === 0 ? app.model.data.subject || 'all' : name[fn]);
    return whole.length <= letters || fn === 0 ? flame.cut(whole, letters) : flame.cut(before + flame.short(name[fn]), letters);
  },

  // Titles of more letters are cut in their middle.
  longest: 300,

  // What of a name is seen in a row of many: its last part, without parameters, and what it belongs to where it has no name
  // of its own.
  short(name) {
    let short = flame.shortened.get(name);
    if (short === undefined) flame.shortened.set(name, short = flame.shorten(name));
    return short;
  },

  shortened: new Map(),

  shorten(name) {
    const [, before, operator] = /^(.*?)\b(operator(?:\(\)|\[\]|->\*?|<=>|[<>]{1,2}=?|[^\w\s(<>]{1,3}|(?=\s)[^(]*))(?=[(<\s]|$)/.exec(name) || [null, name, ''];
    // Names of C have nothing to leave out.
    if (!operator && /^[\w.@+-]*$/.test(before)) return name;
    const parts = flame.bare(before).split('::').map((of) => of.trim()).filter((of) => of !== '');
    const last = operator || parts.pop() || name;
    return /^(operator|\{)/.test(last) && parts.length > 0 ? `${flame.short(parts.join('::'))}::${last}` : last;
  },

  // A name without what stands in brackets.
  bare(name) {
    let [depth, bare] = [0, ''];
    for (let at = 0; at < name.length; at++) {
      const letter = name[at];
      const isArrow = letter === '>' && name[at - 1] === '-';
      if (letter === '<' || letter === '(') depth += 1;
      else if ((letter === '>' && !isArrow) || letter === ')') depth = Math.max(depth - 1, 0);
      else if (depth === 0) bare += letter;
    }
    return bare;
  },

  describe(app, place) {
    const { box, tree, fn, part } = place;
    const { model, sums } = app;
    const { name, module } = model.data.functions;
    if (box.chain.length > 1) {
      const names = box.chain.map((node) => name[tree.fn[node]]);
      const more = names.length > 12 ? [`… ${names.length - 12} more`] : [];
      return [`${box.chain.length} callers in a row: ${app.amount(box.weight)}, ${format.percent(box.weight / sums.all)}; a click opens them`, [...names.slice(0, 12), ...more]];
    }
    const title = fn === 0 ? 'the whole program' : name[fn];
    const lines = [];
    const own = fn === 0 ? 0 : sums.functions.own[fn];
    const draws = sums.watts[fn] > 0 ? `, ${format.quantity(sums.watts[fn], 'W')}` : '';
    // Of a box that is all of its function, and calls nothing, everything is said in one line.
    const isAll = fn !== 0 && box.weight === own;
    const node = flame.nodeOf(place);
    const here = node === null || isAll || fn === 0 ? 0 : sums.places.own[node];
    const drawsHere = here > 0 && sums.places.watts[node] > 0 ? `, ${format.quantity(sums.places.watts[node], 'W')}` : '';
    if (!isAll) lines.push(`${app.amount(box.weight)}, ${format.percent(box.weight / sums.all)} ${part === 'tree' ? 'here, with all that it called' : part === 'callers' ? 'of the middle by these callers' : 'in what the middle called'}`);
    if (here > 0 && here < own) lines.push(`itself here: ${app.amount(here)}, ${format.percent(here / sums.all)}${drawsHere}`);
    if (fn !== 0) {
      lines.push(`${isAll ? '' : 'itself, wherever it is: '}${app.amount(own, sums.errors[fn])}, ${format.percent(own / sums.all)}${draws}`);
      if (module[fn]) lines.push(model.data.modules[module[fn] - 1]);
    }
    const changed = fn === 0 ? null : app.change(app.changes.of(fn), isAll ? 'itself' : 'itself, wherever it is,');
    const changeBelow = node === null ? null : app.changes.atTotal(node);
    const changeHere = node === null || isAll || fn === 0 ? null : app.changes.at(node);
    if (changeBelow && (!isAll || changed === null)) lines.push(app.change(changeBelow, fn === 0 ? '' : 'here, with all that it called,'));
    if (changeHere && (here > 0 || changeHere[0] !== 0)) lines.push(app.change(changeHere, 'itself here'));
    if (changed) lines.push(changed);
    return [format.middle(title, flame.longest), lines];
  },

  // The place of the tree that a box is of; null where it adds up several.
  nodeOf({ part: side, box }) {
    return side === 'tree' ? box.node : null;
  },

  color(app, fn, node = null) {
    const { model, state: chosen } = app;
    const { functions } = model.data;
    const shade = (look.hash(functions.name[fn]) % 16) / 15;
    if (fn === 0) return look.tinted(null, 0);
    if (chosen.color === 'module') return look.tinted(functions.module[fn] ? (functions.module[fn] * 137.5 + 20) % 360 : null, shade);
    if (chosen.color === 'watts') {
      const { low, high } = app.watts;
      const watts = node === null ? app.sums.watts[fn] : app.sums.places.watts[node];
      if (!(watts > 0)) return look.tinted(null, 0);
      return look.between(look.heat(), high > low ? (watts - low) / (high - low) : 0.5);
    }
    if (chosen.color === 'change') {
      const { largest, of, at } = app.changes;
      const found = node === null ? of(fn) : at(node);
      // As far from the middle as the root of the change, so that a tenth is seen, too.
      const size = found === null ? 0 : Math.sqrt(change.certain(found) / (largest || 1));
      return look.between(look.changes(), 0.5 + 0.5 * Math.sign(found === null ? 0 : found[0]) * size);
    }
    return look.tinted(look.kinds[look.kind(model, fn)][1], shade);
  },

  // Where one is: the callers above the widest box.
  trail(app) {
    const { model, state: chosen } = app;
    const trail = look.byId('trail');
    if (chosen.zoom === 0 || chosen.view === 'sandwich') {
      trail.replaceChildren();
      return;
    }
    const above = [];
    for (let node = model.parent[chosen.zoom]; node !== 0; node = model.parent[node]) above.unshift(node);
    const button = (node, text) => look.element('button', { type: 'button', on: { click: () => app.choose({ zoom: node }) } }, text);
    const { name } = model.data.functions;
    const shown = above.slice(-3).map((node) => button(node, flame.short(name[model.fn[node]])));
    trail.replaceChildren(button(0, 'all'), ...(above.length > 3 ? [`${above.length - 3} more`] : []), ...shown, look.element('b', {}, flame.short(name[model.fn[chosen.zoom]])));
  },

  // What the colours say.
  scale(app) {
    const { model, state: chosen } = app;
    const patch = (color) => { const made = look.element('i'); made.style.background = look.css(color); return made; };
    const item = (color, text) => look.element('span', {}, patch(color), text);
    const legend = look.byId('scale');
    if (chosen.color === 'watts') {
      const { low, high } = app.watts;
      const items = high > 0 ? look.heat().map((color, at) => item(color, format.quantity(low + (high - low) * at / 2, 'W', high))) : [];
      legend.replaceChildren('own code draws', ...items, item(look.tinted(null, 0), high > 0 ? 'nothing of its own, or too little to tell' : 'not known: joules follow time'));
    } else if (chosen.color === 'change') {
      const [less, , same, , more] = look.changes();
      const most = app.amount(app.changes.largest);
      legend.replaceChildren('own code (self) took', item(less, `${most} less than before`), item(same, 'the same, or within two standard errors'), item(more, `${most} more`),
        'these errors are of each recording: two runs of one program may differ by more');
    } else if (chosen.color === 'module') {
      const weights = profile.by(app.sums.functions.own, model.data.modules.length + 1, (fn) => model.data.functions.module[fn]);
      const shown = profile.heaviest(weights).filter((module) => module > 0).slice(0, 6);
      legend.replaceChildren(...shown.map((module) => item(look.tinted((module * 137.5 + 20) % 360, 0.5), format.module(model.data.modules[module - 1]))));
    } else {
      const used = new Set(Array.from(model.fn.subarray(1), (fn) => look.kind(model, fn)));
      legend.replaceChildren(...Object.entries(look.kinds).filter(([kind]) => used.has(kind)).map(([, [text, hue]]) => item(look.tinted(hue, 0.5), text)));
    }
  },

  at(event) {
    const canvas = look.byId('flame').getBoundingClientRect();
    const [x, y] = [event.clientX - canvas.left, event.clientY - canvas.top];
    return flame.places.find((place) => x >= place.x && x < place.x + place.w && y >= place.y && y < place.y + flame.row);
  },

  // Arrow keys go to the box in the next row or beside.
  key(app, event) {
    const { focused, places } = flame;
    if (!focused) return;
    const middle = focused.x + focused.w / 2;
    const inRow = (y) => places.filter((place) => place.y === y);
    const overlaps = (place) => place.x < focused.x + focused.w - 0.01 && place.x + place.w > focused.x + 0.01;
    const vertical = (step) => {
      const near = inRow(focused.y + step * flame.row).filter(overlaps);
      // The heaviest of those below, the only one above.
      return near.sort((a, b) => b.w - a.w || Math.abs(a.x - middle) - Math.abs(b.x - middle))[0];
    };
    const beside = (step) => {
      const row = inRow(focused.y).sort((a, b) => a.x - b.x);
      return row[row.indexOf(focused) + step];
    };
    const next = { ArrowDown: () => vertical(1), ArrowUp: () => vertical(-1), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), Home: () => places[0] }[event.key];
    if (next) {
      event.preventDefault();
      flame.focused = next() || focused;
      flame.draw(app);
      flame.say(app);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      flame.open(app, focused);
      flame.say(app);
    } else if (event.key === 's' && focused.fn !== 0) {
      app.choose({ fn: focused.fn, view: 'sandwich' });
    }
  },

  // Tells the focused box by its tooltip and to screen readers.
  say(app) {
    const { focused } = flame;
    if (!focused) return;
    const canvas = look.byId('flame').getBoundingClientRect();
    const scroll = look.byId('scroll');
    if (focused.y < scroll.scrollTop) scroll.scrollTop = focused.y;
    if (focused.y + flame.row > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = focused.y + flame.row - scroll.clientHeight;
    const [title, lines] = flame.describe(app, focused);
    app.tip({ clientX: canvas.left + focused.x + Math.min(focused.w / 2, 60), clientY: canvas.top + focused.y + flame.row }, title, lines);
    look.byId('said').textContent = [title, ...lines].join('. ');
  },
};
