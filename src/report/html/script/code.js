// Instructions of the functions that took most, with what each took in the whole recording.
const code = {
  hottest: 5,

  parts(app, fn) {
    const { code: all, functions, modules } = app.model.data;
    if (!all) return [];
    const name = functions.name[fn];
    const module = functions.module[fn] ? modules[functions.module[fn] - 1] : '';
    const isInlined = inlined.is(functions, fn);
    const said = all.texts.indexOf(name) + 1;
    const isMeant = (of) => of.module === module && (isInlined ? said > 0 && code.values(of.inlined, 2).includes(said) : of.name === name);
    const found = all.functions.filter(isMeant);
    const title = look.element('h4', {}, app.isWhole() ? 'instructions' : 'instructions, of the whole recording');
    if (found.length === 0) return functions.own[fn] > 0 ? [title, look.element('p', { class: 'dim' }, code.about(app, all))] : [];
    const parts = (of) => (isInlined ? code.ofFunction(app, all, of, said, functions.own[fn]) : code.ofFunction(app, all, of, 0, of.own));
    const [of] = found;
    const how = isInlined ? 'of its own, wherever it was put' : of.inlined.length > 0 ? 'with what was inlined into it' : 'itself';
    const whole = look.element('p', { class: 'dim' }, `share: of the ${app.amount(isInlined ? functions.own[fn] : of.own)} that it took ${how}`);
    return [title, whole, ...found.flatMap(parts)];
  },

  // What is in the page.
  about(app, { functions, left_out: [count, weight] }) {
    const left = count > 0 ? `; those of ${format.count(count)} functions, ${format.percent(weight / app.model.data.functions.total[0])} of all, were left out` : '';
    return `not in this page, which has those of the ${functions.length} functions that took most${left}: eprof annotate shows all`;
  },

  // Every second number of pairs.
  values(pairs, step) {
    return pairs.filter((_, at) => at % step === step - 1);
  },

  // The instructions of a function's code; of an inlined function, by the number of its name, those alone that are its own.
  rows(all, of, inlined) {
    const rows = [];
    const text = (number) => (number > 0 ? all.texts[number - 1] : '');
    const changes = (pairs) => {
      const known = new Map();
      for (let at = 0; at < pairs.length; at += 2) known.set(pairs[at], pairs[at + 1]);
      let value = 0;
      return (index) => (value = known.has(index) ? known.get(index) : value);
    };
    const [placeAt, inlinedAt] = [changes(of.places), changes(of.inlined)];
    const gaps = new Set(of.gaps);
    for (let index = 0, at = 0; index < of.instructions.length / 2; index++) {
      at += of.instructions[2 * index];
      const callee = inlinedAt(index);
      rows.push({ at, text: text(of.instructions[2 * index + 1]), place: text(placeAt(index)), callee, inlined: text(callee), gap: gaps.has(index), weight: 0 });
    }
    for (let at = 0; at < of.taken.length; at += 5) {
      const [index, weight, error, samples, milliwatts] = of.taken.slice(at, at + 5);
      Object.assign(rows[index], { weight, error, samples, watts: milliwatts / 1e3 });
    }
    if (inlined === 0) return rows;
    rows.forEach((row, index) => { row.gap ||= index > 0 && rows[index - 1].callee !== inlined; });
    return rows.filter(({ callee }) => callee === inlined);
  },

  address(at, digits) {
    return BigInt.asUintN(64, BigInt(at)).toString(16).padStart(digits);
  },

  ofFunction(app, all, of, inlined, whole) {
    const rows = code.rows(all, of, inlined);
    const here = of.instructions.length / 2;
    const notes = [];
    if (inlined > 0) notes.push(`in ${of.name}`);
    if (of.why) notes.push(`without instructions: ${of.why}`);
    if (here < of.all) notes.push(`${format.count(here)} of ${format.count(of.all)} are in this page: those that took most, and what stands around them`);
    const digits = code.address(rows.reduce((most, { at }) => Math.max(most, at), 0), 0).length;
    const hasErrors = rows.some(({ error }) => error > 0);
    const hasSamples = app.model.data.weight !== 'samples';
    const hasWatts = rows.some(({ watts }) => watts > 0);
    const most = rows.reduce((heaviest, { weight }) => Math.max(heaviest, weight), 0);
    const made = new Map();
    let [place, callee] = ['', 0];
    const body = [];
    for (const row of rows) {
      const columns = 3 + (hasWatts ? 1 : 0) + (hasSamples ? 1 : 0);
      if (row.gap) body.push(look.element('tr', { class: 'gap' }, look.element('td', { colspan: columns + 1 }, '⋯')));
      if (inlined === 0 && row.callee !== callee && row.callee > 0) {
        body.push(look.element('tr', { class: 'inlined' }, look.element('td', { colspan: columns - 1 }), look.element('td', { colspan: 2 }, `↳ inlined ${row.inlined}`)));
      }
      callee = row.callee;
      const cell = (kind, text) => look.element('td', { class: kind }, text);
      const line = look.element('tr', {},
        cell('number', row.weight ? format.percent(row.weight / (whole || 1)) : ''),
        cell('number', row.weight ? app.amount(row.weight, row.error) : ''),
        ...(hasWatts ? [cell('number', row.watts > 0 ? format.quantity(row.watts, 'W') : '')] : []),
        ...(hasSamples ? [cell('number', row.weight ? format.count(row.samples) : '')] : []),
        cell('code', `${inlined === 0 && callee > 0 ? '  ' : ''}${code.address(row.at, digits)}: ${row.text}`),
        cell('place', row.place === place ? '' : row.place));
      place = row.place;
      if (row.weight) line.style.setProperty('--heat', `${Math.round(6 + 22 * row.weight / most)}%`);
      made.set(row, line);
      body.push(line);
    }
    const head = ['share', hasErrors ? 'joules ±' : app.model.data.weight, ...(hasWatts ? ['watts'] : []), ...(hasSamples ? ['samples'] : []), 'instruction', 'line'];
    const table = look.element('table', { class: 'source machine' },
      look.element('thead', {}, look.element('tr', {}, ...head.map((text) => look.element('th', { scope: 'col' }, text)))),
      look.element('tbody', {}, ...body));
    const region = look.element('div', { class: 'instructions', tabindex: '0', role: 'region', 'aria-label': `instructions of ${of.name}` }, table);
    return [...notes.map((note) => look.element('p', { class: 'dim file' }, note)), code.heaviest(app, rows, made, digits, whole), region].filter((part) => part !== null);
  },

  // What took most, with its share of the function's, as in the table: a click shows where it stands.
  heaviest(app, rows, made, digits, whole) {
    const hot = rows.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight);
    if (hot.length < 2) return null;
    const all = whole || 1;
    const item = (row) => {
      const show = () => {
        const [shown, region] = [made.get(row), made.get(row).closest('.instructions')];
        for (const line of made.values()) line.classList.toggle('shown', line === shown);
        region.scrollTop = shown.offsetTop - region.clientHeight / 2;
        region.scrollIntoView({ block: 'nearest' });
      };
      const button = look.element('button', { type: 'button', class: 'bar', on: { click: show } },
        look.element('span', { class: 'amount' }, app.amount(row.weight)), look.element('span', { class: 'amount' }, format.percent(row.weight / all)),
        look.element('span', { class: 'name' }, `${code.address(row.at, digits)}: ${row.text}`));
      button.style.setProperty('--bar', `${row.weight / all * 100}%`);
      return look.element('li', {}, button);
    };
    return look.element('ul', { 'aria-label': 'instructions that took most' }, ...hot.slice(0, code.hottest).map(item));
  },
};
