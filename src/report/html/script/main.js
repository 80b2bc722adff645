// The page: what is chosen becomes sums, and sums become pictures.
const main = {
  start() {
    const model = part.withWatts(profile.unpack(JSON.parse(look.byId('data').textContent)));
    const app = { apart: model, state: state.read(model, location.hash) };
    app.amount = (weight, error = 0) => (model.data.weight === 'joules'
      ? format.withError(weight / model.data.unit, error / model.data.unit, 'J') : format.counted(weight, model.data.weight === 'samples' ? 'sample' : 'event'));
    app.isWhole = () => profile.isWhole(model, app.state.from, app.state.to) && app.state.thread === null;
    app.choose = (changes) => { Object.assign(app.state, changes); main.update(app); };
    app.change = (found, where) => change.text(found, where, app.amount);
    app.tip = main.tip;
    main.use(app);
    main.head(app);
    main.controls(app);
    timeline.begin(app);
    flame.begin(app);
    table.begin(app);
    main.keys(app);
    const redraw = () => main.draw(app);
    // An observer tells the size that was drawn already, too.
    new ResizeObserver(() => { if (look.byId('flame').clientWidth !== look.widths.flame || innerHeight !== table.screen) redraw(); }).observe(look.byId('main'));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
    matchMedia('print').addEventListener('change', (event) => main.print(app, event.matches));
    window.addEventListener('hashchange', () => {
      if (location.hash.slice(1) === app.written) return;
      app.state = state.read(app.apart, location.hash);
      main.update(app);
    });
    main.update(app);
    return app;
  },

  // What is chosen is seen in a model: the one in which inlined functions are told apart, or the other.
  use(app) {
    const model = state.model(app.apart, app.state);
    if (app.model === model) return;
    Object.assign(app, {
      model, watts: model.watts, older: profile.older(model), tree: { parent: model.parent, fn: model.fn, total: null }, computed: null, stacked: null,
    });
  },

  // All that follows from the chosen time, thread and text.
  compute(app) {
    const { model, state: chosen } = app;
    const key = `${chosen.from} ${chosen.to} ${chosen.thread}`;
    if (app.computed !== key) {
      app.computed = key;
      const { from, to, thread } = chosen;
      const { leaves, nodes, functions } = profile.sums(model, from, to, thread);
      app.sums = {
        leaves, nodes, functions, all: nodes.total[0], errors: part.errors(model, from, to, thread, functions.own),
        watts: part.watts(model, from, to, thread, functions.own), places: part.nodes(model, from, to, thread),
      };
      app.changes = app.isWhole() ? change.between(model, app.older, app.sums.places.own, nodes.total) : change.none;
    }
    const { matches, isPattern } = profile.matches(model, chosen.find);
    app.found = { matches, isPattern, any: chosen.find !== '', pattern: main.pattern(chosen.find, isPattern) };
  },

  pattern(text, isPattern) {
    return new RegExp(isPattern ? text : text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), /[A-Z]/.test(text) ? 'u' : 'iu');
  },

  update(app) {
    main.use(app);
    main.compute(app);
    main.draw(app);
    main.remember(app);
  },

  // How often it was drawn.
  drawn: 0,

  draw(app) {
    main.drawn += 1;
    look.measure();
    timeline.draw(app);
    flame.draw(app);
    table.draw(app);
    details.draw(app);
    main.found(app);
    for (const [id, key] of [['view', 'view'], ['color', 'color'], ['group', 'group'], ['stack', 'stack'], ['inlining', 'inlined']]) look.byId(id).value = app.state[key];
    if (document.activeElement !== look.byId('find')) look.byId('find').value = app.state.find;
    const thread = look.byId('thread');
    thread.hidden = app.state.thread === null;
    if (app.state.thread !== null) thread.textContent = `only ${app.model.data.threads[app.state.thread]} ×`;
  },

  // Browsers refuse to write addresses too often.
  remember(app) {
    clearTimeout(app.timer);
    app.timer = setTimeout(() => {
      app.written = state.write(app.model, app.state);
      try {
        history.replaceState(null, '', app.written === '' ? location.pathname + location.search : `#${app.written}`);
      } catch {
        location.hash = app.written;
      }
    }, 150);
  },

  found(app) {
    const { any, matches, isPattern } = app.found;
    const sum = any ? profile.matched(app.model, app.sums.leaves, matches) : 0;
    const note = isPattern ? '' : ' (as plain text: it is no regular expression)';
    const about = app.model.isApart ? 'about ' : '';
    look.byId('found').textContent = any ? `matched ${about}${format.percent(sum / (app.sums.all || 1))}, ${app.amount(sum)} with all that they called${note}` : '';
  },

  head(app) {
    const { data, slices } = app.model;
    look.byId('heading').textContent = data.subject || data.heading;
    const all = data.balance.reduce((sum, [, joules]) => sum + joules, 0);
    const facts = data.weight === 'joules'
      ? `${format.quantity(all, 'J')} in ${format.quantity(data.seconds, 's')}${data.seconds > 0 ? `, ${format.quantity(all / data.seconds, 'W')}` : ''}: ${data.how}`
      : data.subject ? `${data.heading}: ${data.how}` : data.how;
    look.byId('facts').textContent = facts;
    look.byId('facts').classList.toggle('estimate', Boolean(data.estimate));
    if (app.older) {
      const { older } = data;
      look.byId('older').textContent = `compared with ${older.subject || 'an older recording'}: ${app.amount(older.total)} of the program${older.seconds > 0 ? ` in ${format.quantity(older.seconds, 's')}` : ''}, now ${app.amount(data.functions.total[0])}; ${older.how}`;
    }
    main.balance(data, all);
    const notes = [...data.warnings];
    if (data.lightest > 0) notes.push(`call paths with less than ${format.percent(data.lightest).replace('0.0 %', '0.1 %')} of all are drawn as part of their callers; what functions took themselves is exact`);
    if (data.slices.untimed.length > 0 && slices > 1) notes.push('some of it is not known by time (GPU kernels): it is part of the whole, and of no chosen stretch of time');
    if (data.gaps && slices > 1) notes.push(`time in which nobody recorded is left out; ${data.gaps.length === 1 ? 'a dashed line stands' : 'dashed lines stand'} in its place`);
    look.byId('notes').hidden = notes.length === 0;
    // The first of them is read without a click, as far as there is room.
    look.byId('notes').querySelector('summary').replaceChildren(look.element('b', {}, `${notes.length} note${notes.length === 1 ? '' : 's'}`), notes.length > 0 ? ` ${notes[0]}` : '');
    look.byId('warnings').replaceChildren(...notes.map((note) => look.element('li', {}, note)));
    look.byId('power').hidden = slices < 2;
  },

  balance(data, all) {
    const bar = look.byId('bar');
    const list = look.byId('balance');
    const shown = data.balance.filter(([, joules]) => joules > 0);
    const name = (part) => (part === 'program' ? 'the program' : part);
    bar.hidden = list.hidden = shown.length === 0;
    bar.replaceChildren(...shown.map(([part, joules]) => {
      const made = look.element('span', { class: `part ${part.split(' ')[0]}` });
      made.style.flexGrow = joules / all;
      return made;
    }));
    list.replaceChildren(...shown.map(([part, joules]) => look.element('li', {},
      look.element('i', { class: `part ${part.split(' ')[0]}` }), `${name(part)} `, look.element('b', {}, format.quantity(joules, 'J')), ` ${format.percent(joules / all)}`)));
  },

  controls(app) {
    const { model } = app;
    const find = look.byId('find');
    find.addEventListener('input', () => app.choose({ find: find.value }));
    look.byId('thread').addEventListener('click', () => app.choose({ thread: null }));
    look.byId('help').addEventListener('click', () => look.byId('keys').showModal());
    look.byId('inlined').hidden = !inlined.isIn(model.data);
    look.byId('inlining').addEventListener('change', (event) => app.choose(state.inline(app.apart, app.state, event.target.value)));
    const drop = (id, value) => look.byId(id).querySelector(`[value="${value}"]`).remove();
    if (!app.older) drop('color', 'change');
    if (app.watts.high === 0) drop('color', 'watts');
    if (model.data.weight !== 'joules') for (const value of ['function', 'thread', 'cpu']) drop('stack', value);
    if (model.data.cpus.length < 2 && model.data.weight === 'joules') drop('stack', 'cpu');
    if (app.watts.high === 0 && app.state.color === 'watts') app.state.color = 'kind';
  },

  keys(app) {
    const find = look.byId('find');
    window.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || look.byId('keys').open) return;
      const isTyping = event.target === find;
      if (event.key === 'Escape') main.back(app, isTyping);
      else if (isTyping && event.key === 'Enter') look.byId('flame').focus();
      else if (isTyping || event.target.tagName === 'SELECT') return;
      else if (event.key === '/') find.focus();
      else if (event.key === '?') look.byId('keys').showModal();
      else return;
      event.preventDefault();
    });
  },

  // Escape takes back one thing after the other, the last first.
  back(app, isTyping) {
    const { model, state: chosen } = app;
    if (chosen.find !== '') {
      look.byId('find').value = '';
      app.choose({ find: '' });
    } else if (isTyping) look.byId('find').blur();
    else if (chosen.view === 'sandwich') app.choose({ view: 'icicle' });
    else if (chosen.zoom !== 0) app.choose({ zoom: 0 });
    else if (chosen.fn !== null) app.choose({ fn: null });
    else if (chosen.thread !== null) app.choose({ thread: null });
    else if (!profile.isWhole(model, chosen.from, chosen.to)) app.choose({ from: 0, to: model.slices });
    else if (chosen.opened.size > 0) app.choose({ opened: new Set() });
  },

  // A title and lines beside the pointer; nothing without an event.
  tip(event, title = '', lines = []) {
    const tip = look.byId('tip');
    tip.hidden = event === null;
    if (event === null) return;
    tip.replaceChildren(look.element('b', {}, title), ...lines.map((line) => look.element('div', {}, line)));
    const { width, height } = tip.getBoundingClientRect();
    const x = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
    const y = event.clientY + 18 + height > innerHeight ? event.clientY - 12 - height : event.clientY + 18;
    tip.style.transform = `translate(${Math.max(x, 4)}px, ${Math.max(y, 4)}px)`;
  },

  // On paper: dark on light, the table's first rows instead of those in sight, and what the reader must know.
  print(app, isPrinted) {
    look.isPrinted = isPrinted;
    if (isPrinted) look.byId('notes').open = true;
    main.draw(app);
  },
};

if (typeof document === 'undefined') module.exports = { format, profile, part, change, inlined, layout, state };
else window.eprof = main.start();
