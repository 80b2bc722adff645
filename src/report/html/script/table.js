// The same sums as rows. Only those in sight are elements: ten thousand scroll as ten do.
const table = {
  rowHeight: 24,
  spare: 12,
  rows: [],
  focused: 0,
  // How far it is scrolled, and the screen's height.
  top: 0,
  screen: 0,
  // What the rows follow from.
  listed: null,
  printed: 60,

  begin(app) {
    const box = look.byId('rows');
    box.addEventListener('scroll', () => {
      table.top = box.scrollTop;
      table.show(app);
    });
    box.addEventListener('keydown', (event) => table.key(app, event));
    look.byId('group').addEventListener('change', (event) => app.choose({ group: event.target.value }));
  },

  // What columns there are: title, the unit's weight where all rows have one, text and order of a row.
  columns(app) {
    const { model, state: chosen } = app;
    const { data } = model;
    const isJoules = data.weight === 'joules';
    const byFunction = chosen.group === 'function';
    const largest = (key) => table.rows.reduce((most, row) => Math.max(most, Math.abs(row[key] || 0)), 0);
    const weight = (key, title, more = {}) => {
      const like = largest(key) / data.unit;
      const [prefix, factor] = format.prefix(like);
      const text = (value) => (isJoules ? format.digits(value / data.unit / factor, like / factor) : format.count(value));
      return { key, title: isJoules ? `${title}, ${prefix}J` : title, text: (row) => (row[key] === null ? '' : text(row[key])), ...more };
    };
    const columns = [weight('own', byFunction || chosen.group === 'module' ? 'self' : data.weight === 'joules' ? 'energy' : data.weight)];
    const like = largest('own') / data.unit;
    const [, factor] = format.prefix(like);
    const same = (value) => (isJoules ? format.digits(value / data.unit / factor, like / factor) : format.count(value));
    if (byFunction && isJoules) {
      columns.push({ key: 'error', title: '±', text: (row) => (row.error > 0 ? same(row.error) : ''), hint: 'one standard error' });
    }
    columns.push({ key: 'share', title: 'share', text: (row) => format.percent(row.share), bar: (row) => row.share });
    if (byFunction) columns.push(weight('total', 'total', { hint: 'with all that it called' }));
    if (byFunction && isJoules && app.watts.high > 0) {
      columns.push({ key: 'watts', title: 'W', text: (row) => (row.watts > 0 && 3 * row.error < row.own ? format.digits(row.watts) : ''), hint: 'while its own code ran; of functions whose joules are known to a third' });
    }
    if (byFunction && app.older) {
      columns.push({ key: 'change', title: 'self change', hint: 'of what its own code took, with one standard error of both recordings', text: (row) => (row.change === null ? '' : table.signed(row.change, same) + (row.changeError > 0 ? ` ± ${same(row.changeError)}` : '')), className: (row) => (row.change === null || change.certain([row.change, row.changeError]) === 0 ? '' : row.change > 0 ? 'more' : 'less') });
    }
    if (byFunction && app.older) {
      columns.push({ key: 'totalChange', title: 'total change', hint: 'of what it took with all that it called', text: (row) => (row.totalChange === null ? '' : table.signed(row.totalChange, same)) });
    }
    if (byFunction && data.threads.length > 1) columns.push({ key: 'threads', title: 'threads', text: (row) => (row.threads ? String(row.threads) : '') });
    columns.push({ key: 'name', title: chosen.group === 'cpu' ? 'CPU' : chosen.group, text: (row) => row.name, isText: true });
    if (byFunction) {
      if (data.lines && Object.keys(data.lines.functions).length > 0) columns.push({ key: 'line', title: 'line', text: (row) => row.line, isText: true, fixed: true, hint: 'the line of the source that took most' });
      columns.push({ key: 'module', title: 'module', text: (row) => format.module(row.module), isText: true });
    }
    return columns;
  },

  signed(weight, text) {
    return `${weight > 0 ? '+' : weight < 0 ? '−' : ''}${text(Math.abs(weight))}`;
  },

  // A row for each function, module, thread or CPU.
  find(app) {
    const { model, state: chosen, sums } = app;
    const { data } = model;
    const all = sums.all || 1;
    const simple = (weights, name, more) => Array.from(weights.keys()).filter((key) => weights[key] > 0)
      .map((key) => ({ key, own: weights[key], share: weights[key] / all, name: name(key), module: '', ...more(key) }));
    if (chosen.group === 'thread') return simple(profile.threads(model, sums.leaves), (thread) => data.threads[thread], () => ({}));
    if (chosen.group === 'cpu') return simple(profile.cpus(model, chosen.from, chosen.to), (cpu) => data.cpus[cpu], () => ({}));
    if (chosen.group === 'module') {
      const weights = profile.by(sums.functions.own, data.modules.length + 1, (fn) => data.functions.module[fn]);
      return simple(weights, (module) => (module ? data.modules[module - 1] : 'no module'), () => ({}));
    }
    return table.functions(app, all);
  },

  functions(app, all) {
    const { model, sums } = app;
    const { functions, modules, lines } = model.data;
    const isWhole = app.isWhole();
    // Those that are seen in no branch that is drawn have their totals from the recording as a whole.
    const total = isWhole ? functions.total : sums.functions.total;
    const threads = table.threadsOf(app);
    const line = (fn) => {
      const found = lines && lines.functions[fn];
      return found && found.length > 0 ? `${lines.files[found[0]].split('/').pop()}:${found[1]}` : '';
    };
    const rows = [];
    for (let fn = 1; fn < model.functions; fn++) {
      const own = sums.functions.own[fn];
      if (functions.class[fn] === 'a' || (own === 0 && total[fn] === 0 && !app.older?.functions.has(fn))) continue;
      const [changed, changeError] = app.changes.of(fn) || [null, 0];
      const [totalChange] = app.changes.ofTotal(fn) || [null];
      rows.push({
        key: fn, own, share: own / all, error: sums.errors[fn], total: total[fn], watts: sums.watts[fn], change: changed, changeError, totalChange, threads: threads[fn], name: functions.name[fn],
        line: line(fn), module: functions.module[fn] ? modules[functions.module[fn] - 1] : '',
      });
    }
    if (app.older && isWhole) {
      for (const gone of model.data.older.gone) {
        rows.push({ key: null, own: 0, share: 0, error: 0, total: 0, watts: 0, change: -gone.own, changeError: gone.error, totalChange: -gone.total, threads: 0, name: gone.name, line: '', module: gone.module || '' });
      }
    }
    return rows;
  },

  threadsOf(app) {
    const { model, sums } = app;
    const counts = new Uint32Array(model.functions);
    const seen = new Set();
    for (let leaf = 0; leaf < model.leaves.count; leaf++) {
      const pair = model.leaves.fn[leaf] * model.data.threads.length + model.leaves.thread[leaf];
      if (sums.leaves[leaf] > 0 && model.leaves.inFunctions[leaf] && !seen.has(pair)) {
        seen.add(pair);
        counts[model.leaves.fn[leaf]] += 1;
      }
    }
    return counts;
  },

  draw(app) {
    const { state: chosen } = app;
    const found = table.find(app);
    const isShown = (row) => !app.found.any || (chosen.group === 'function'
      ? (row.key === null ? app.found.pattern.test(row.name) : app.found.matches[row.key]) : app.found.pattern.test(row.name));
    table.rows = found.filter(isShown);
    table.all = found.length;
    table.sort(chosen);
    table.used = table.columns(app);
    table.head(app);
    // Other rows, or the same in another order, are read from the first one on.
    const listed = [chosen.find, chosen.group, chosen.sort, chosen.rises].join('\n');
    if (table.listed !== listed) {
      if (table.top > 0) look.byId('rows').scrollTop = 0;
      [table.listed, table.focused, table.top] = [listed, 0, 0];
    }
    table.focused = Math.min(table.focused, Math.max(table.rows.length - 1, 0));
    const own = table.rows.reduce((sum, row) => sum + row.own, 0);
    const shown = table.rows.length < found.length ? `${format.count(table.rows.length)} of ` : '';
    look.byId('count').textContent = `${shown}${format.counted(found.length, chosen.group === 'cpu' ? 'CPU' : chosen.group)}: ${app.amount(own)}${chosen.group === 'function' ? ' themselves' : ''}, ${format.percent(own / (app.sums.all || 1))}`;
    table.show(app, true);
  },

  sort({ sort, rises }) {
    const key = sort === 'share' ? 'own' : sort;
    const of = (row) => row[key] ?? 0;
    const order = key === 'name' || key === 'module' ? (a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0)
      // What changed most comes first, whether it is more or less.
      : key === 'change' || key === 'totalChange' ? (a, b) => Math.abs(of(b)) - Math.abs(of(a)) : (a, b) => of(b) - of(a);
    const sign = rises ? -1 : 1;
    table.rows.sort((a, b) => sign * order(a, b) || b.own - a.own || b.total - a.total || (a.name < b.name ? -1 : 1));
  },

  head(app) {
    const { sort, rises } = app.state;
    const cells = table.used.map((column) => {
      const isText = ['name', 'module', 'line'].includes(column.key);
      const choose = () => app.choose({ sort: column.key, rises: sort === column.key && !rises });
      const isSorted = sort === column.key;
      const ascending = isSorted && (isText ? !rises : rises);
      return look.element('th', {
        scope: 'col', class: isText ? `text ${column.key}` : column.key, title: column.hint, 'aria-sort': isSorted ? (ascending ? 'ascending' : 'descending') : null,
      }, column.fixed ? column.title : look.element('button', { type: 'button', on: { click: choose } }, column.title));
    });
    const row = look.byId('head');
    // The button that was pressed keeps the focus.
    const pressed = [...row.querySelectorAll('button')].indexOf(document.activeElement);
    row.replaceChildren(...cells);
    if (pressed >= 0) row.querySelectorAll('button')[pressed]?.focus();
  },

  show(app, isNew = false) {
    const { rows, rowHeight } = table;
    table.screen = innerHeight;
    // Not higher than the style sheet lets it be; how high it is will be known only when it has rows.
    const height = Math.min(table.screen * 0.6, 640);
    // A box that is scrolled farther than there are rows by now will be scrolled back only after this.
    const top = Math.min(table.top, Math.max(rows.length * rowHeight - height, 0));
    const first = look.isPrinted ? 0 : Math.max(Math.floor(top / rowHeight) - table.spare, 0);
    const last = look.isPrinted ? Math.min(rows.length, table.printed)
      : Math.min(Math.ceil((top + height) / rowHeight) + table.spare, rows.length);
    if (!isNew && table.first === first && table.last === last) return;
    [table.first, table.last] = [first, last];
    const body = look.byId('body');
    const hadFocus = body.contains(document.activeElement);
    const space = (count) => {
      const row = look.element('tr', { 'aria-hidden': 'true', class: 'space' }, look.element('td', { colspan: table.used.length }));
      row.style.height = `${look.isPrinted ? 0 : count * rowHeight}px`;
      return row;
    };
    look.byId('grid').setAttribute('aria-rowcount', String(rows.length + 1));
    const shown = rows.slice(first, last).map((row, at) => table.row(app, row, first + at));
    body.replaceChildren(space(first), ...shown, space(rows.length - last));
    if (hadFocus) table.focus(app, false);
  },

  row(app, row, index) {
    const isChosen = app.state.group === 'function' ? row.key !== null && row.key === app.state.fn
      : app.state.group === 'thread' && row.key === app.state.thread;
    const cells = table.used.map((column) => {
      const isText = column.isText;
      const text = column.text(row);
      const cell = look.element('td', { class: [isText ? `text ${column.key}` : column.key, column.className ? column.className(row) : ''].join(' ').trim(), title: isText && text ? (column.key === 'module' ? row.module : text) : null }, text);
      if (column.bar) cell.style.setProperty('--bar', `${Math.min(Math.max(column.bar(row), 0), 1) * 100}%`);
      return cell;
    });
    return look.element('tr', {
      'aria-rowindex': index + 2, 'aria-selected': String(isChosen), tabindex: index === table.focused ? 0 : -1, 'data-index': index,
      on: { click: () => { table.focused = index; table.open(app, row); } },
    }, ...cells);
  },

  open(app, row) {
    if (row.key === null) return;
    if (app.state.group === 'function') {
      app.choose({ fn: app.state.fn === row.key ? null : row.key });
      details.show();
    } else if (app.state.group === 'thread') app.choose({ thread: app.state.thread === row.key ? null : row.key });
    else if (app.state.group === 'module') app.choose({ find: row.name === 'no module' ? '' : row.name });
  },

  key(app, event) {
    if (event.target.tagName !== 'TR') return;
    const page = Math.max(Math.floor(look.byId('rows').clientHeight / table.rowHeight) - 2, 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -table.rows.length, End: table.rows.length };
    if (steps[event.key]) {
      event.preventDefault();
      table.focused = Math.min(Math.max(table.focused + steps[event.key], 0), table.rows.length - 1);
      table.focus(app, true);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (table.rows[table.focused]) table.open(app, table.rows[table.focused]);
    }
  },

  // Puts the focus on its row, which may have to come into sight first.
  focus(app, moves) {
    const box = look.byId('rows');
    const top = table.focused * table.rowHeight;
    const head = table.rowHeight + 4;
    if (moves && top < box.scrollTop) box.scrollTop = top;
    if (moves && top + table.rowHeight + head > box.scrollTop + box.clientHeight) box.scrollTop = top + table.rowHeight + head - box.clientHeight;
    table.top = box.scrollTop;
    if (moves) table.show(app, true);
    const row = look.byId('body').querySelector(`tr[data-index="${table.focused}"]`);
    if (row && row !== document.activeElement) row.focus({ preventScroll: true });
  },
};
