// What is known of one function: where its joules lie, by whom it is called, what it calls, what its lines took.
const details = {
  most: 8,
  // A name of more letters is cut in its middle.
  longest: 400,

  draw(app) {
    const { model, state: chosen, sums } = app;
    const panel = look.byId('details');
    const { fn } = chosen;
    panel.hidden = fn === null;
    document.body.classList.toggle('chosen', fn !== null);
    if (fn === null) return;
    const { functions, modules, threads } = model.data;
    const own = sums.functions.own[fn];
    const total = app.isWhole() ? functions.total[fn] : sums.functions.total[fn];
    const draws = sums.watts[fn] > 0 ? `, ${format.quantity(sums.watts[fn], 'W')} while it ran` : '';
    const changed = app.change(app.changes.of(fn), 'itself');
    const changedBelow = app.change(app.changes.ofTotal(fn), 'with all that it called');
    const button = (text, act) => look.element('button', { type: 'button', on: { click: act } }, text);
    const ofThreads = profile.threads(model, sums.leaves);
    const inThread = profile.threadsOf(model, sums.leaves, fn);
    const parts = [
      look.element('h3', { title: functions.name[fn] }, format.middle(functions.name[fn], details.longest)),
      look.element('p', { class: 'dim' }, functions.module[fn] ? modules[functions.module[fn] - 1] : ''),
      ...details.about(functions.name[fn]),
      look.element('p', {}, 'itself ', look.element('b', {}, app.amount(own, sums.errors[fn])), `, ${format.percent(own / (sums.all || 1))}${draws}`),
      look.element('p', {}, 'with all that it called ', look.element('b', {}, app.amount(total)), `, ${format.percent(total / (sums.all || 1))}`),
      changed ? look.element('p', {}, changed) : null,
      changedBelow ? look.element('p', {}, changedBelow) : null,
      look.element('p', { class: 'acts' },
        button('callers and callees', () => app.choose({ view: 'sandwich' })),
        button('find it', () => app.choose({ find: `^${functions.name[fn].replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}$` })),
        button('close', () => app.choose({ fn: null }))),
      ...details.bars(app, 'called by', layout.neighbours(layout.callers(model, sums.nodes.total, fn)), total, 'nobody: paths begin here, or are not drawn'),
      ...details.bars(app, 'calls', layout.neighbours(layout.callees(model, sums.nodes.total, fn)), total, null),
      ...(threads.length > 1 ? details.list('in threads', profile.heaviest(inThread).slice(0, details.most).map((thread) => [threads[thread], inThread[thread], own, `${format.percent(inThread[thread] / (ofThreads[thread] || 1))} of the thread`]), app) : []),
      ...details.lines(app, fn),
      ...code.parts(app, fn),
    ];
    panel.replaceChildren(...parts.filter((part) => part !== null));
  },

  // What stands in the place of names.
  named: [
    [/^\[unknown\]$/, 'Code that lies in no file and in no map of a compiler: its addresses have no names.'],
    [/^\[folded\]$/, 'Branches for which there was no memory: --memory makes room for them.'],
    [/not sampled/, 'What ran here was not sampled: its CPU time is counted, and nothing more is known of it.'],
    [/\+(0x|fn_)[0-9a-f]+$/, 'Code without a name: the file has no symbols for it. It is called by its place in the file.'],
  ],

  about(name) {
    return details.named.filter(([pattern]) => pattern.test(name)).slice(0, 1).map(([, text]) => look.element('p', { class: 'dim' }, text));
  },

  // The heaviest of them, all others, and what has none.
  bars(app, title, neighbours, total, nobody) {
    const { name } = app.model.data.functions;
    const rows = neighbours.slice(0, details.most).map(([fn, weight]) => [name[fn], weight, total, '', fn]);
    const sum = (of) => of.reduce((all, [, weight]) => all + weight, 0);
    const others = neighbours.slice(details.most);
    if (others.length > 0) rows.push([`${others.length} others`, sum(others), total, '']);
    const rest = total - sum(neighbours);
    if (nobody !== null && rows.length > 0 && rest > total * details.least) rows.push([nobody, rest, total, '']);
    return details.list(title, rows, app);
  },

  // Less of a function has no row.
  least: 0.0005,

  // Comes into sight, where it lies below.
  show() {
    const panel = look.byId('details');
    if (!panel.hidden && panel.getBoundingClientRect().top > innerHeight - 120) panel.scrollIntoView({ block: 'start' });
  },

  // Rows with a bar, as a list.
  list(title, rows, app) {
    if (rows.length === 0) return [];
    const item = ([name, weight, whole, more, fn]) => {
      const text = [look.element('span', { class: 'amount' }, app.amount(weight)), look.element('span', { class: 'amount' }, format.percent(weight / (whole || 1))), look.element('span', { class: 'name' }, format.middle(name, details.longest)), more ? look.element('span', { class: 'dim' }, more) : null];
      const row = fn === undefined ? look.element('span', { class: 'bar' }, ...text)
        : look.element('button', { type: 'button', class: 'bar', title: name, on: { click: () => app.choose({ fn }) } }, ...text);
      row.style.setProperty('--bar', `${Math.min(weight / (whole || 1), 1) * 100}%`);
      return look.element('li', {}, row);
    };
    return [look.element('h4', {}, title), look.element('ul', {}, ...rows.map(item))];
  },

  // Lines of the source with what each took, of the whole recording; with their text where the page has it.
  lines(app, fn) {
    const { lines } = app.model.data;
    const found = lines && lines.functions[fn];
    if (!found || found.length === 0) return [];
    const weights = new Map();
    for (let at = 0; at < found.length; at += 3) {
      const [file, line, weight] = found.slice(at, at + 3);
      if (!weights.has(file)) weights.set(file, new Map());
      weights.get(file).set(line, weight);
    }
    const parts = [look.element('h4', {}, app.isWhole() && app.state.thread === null ? 'lines' : 'lines, of the whole recording')];
    for (const [file, ofFile] of weights) {
      const texts = (lines.texts && lines.texts[file]) || {};
      parts.push(look.element('p', { class: 'dim file' }, lines.files[file]));
      parts.push(look.element('table', { class: 'source' }, look.element('tbody', {}, ...details.source(app, ofFile, texts))));
    }
    return parts;
  },

  source(app, weights, texts) {
    const near = (line) => [...weights.keys()].some((heavy) => Math.abs(heavy - line) <= 3);
    const numbers = new Set([...weights.keys(), ...Object.keys(texts).map(Number).filter(near)]);
    const most = Math.max(...weights.values());
    let before = null;
    const rows = [];
    for (const line of [...numbers].sort((a, b) => a - b)) {
      if (before !== null && line > before + 1) rows.push(look.element('tr', { class: 'gap' }, look.element('td', { colspan: 3 }, '⋯')));
      before = line;
      const weight = weights.get(line);
      const row = look.element('tr', {},
        look.element('td', {}, weight ? app.amount(weight) : ''),
        look.element('td', { class: 'number' }, String(line)),
        look.element('td', { class: 'code' }, texts[line] || ''));
      if (weight) row.style.setProperty('--heat', `${Math.round(6 + 22 * weight / most)}%`);
      rows.push(row);
    }
    return rows;
  },
};
