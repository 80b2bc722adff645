// What is chosen, and its way into the page's address and back.
const state = {
  views: ['icicle', 'flame', 'sandwich'],
  colors: ['kind', 'module', 'watts', 'change'],
  groups: ['function', 'module', 'thread', 'cpu'],
  stacks: ['function', 'domain', 'thread', 'cpu'],
  // Functions that the compiler put into others have rows of their own, or are part of these.
  inlinings: ['apart', 'into'],
  sorts: ['own', 'share', 'error', 'total', 'watts', 'change', 'totalChange', 'threads', 'name', 'module'],

  initial(model) {
    const isCompared = Boolean(model.data.older);
    // Where code is told apart by its power, that is what a profile by time does not show.
    const differs = model.watts.high > model.watts.low * 1.1;
    return {
      from: 0, to: model.slices, thread: null, zoom: 0, fn: null, find: '', view: 'icicle', group: 'function',
      sort: isCompared ? 'change' : 'own', rises: false, color: isCompared ? 'change' : differs ? 'watts' : 'kind',
      stack: model.data.weight === 'joules' ? 'function' : 'domain', opened: new Set(), inlined: 'apart',
    };
  },

  // Only what is not as it was in the beginning.
  write(model, chosen) {
    const initial = state.initial(model);
    const parts = [];
    const add = (key, value) => parts.push(`${key}=${encodeURIComponent(value).replace(/%2C/g, ',')}`);
    if (!profile.isWhole(model, chosen.from, chosen.to)) {
      add('t', `${+model.edges[chosen.from].toFixed(6)},${+model.edges[chosen.to].toFixed(6)}`);
    }
    for (const key of ['inlined', 'thread', 'zoom', 'fn', 'find', 'view', 'group', 'sort', 'color', 'stack']) {
      if (chosen[key] !== initial[key]) add(key, chosen[key]);
    }
    if (chosen.rises) add('rises', 1);
    if (chosen.opened.size > 0) add('open', [...chosen.opened].join(','));
    return parts.join('&');
  },

  // What an address says; what makes no sense of this page is left as it is in the beginning.
  read(model, hash) {
    const chosen = state.initial(model);
    const said = new URLSearchParams(hash.replace(/^#/, ''));
    const number = (text, below) => {
      const value = text === null || text === '' ? NaN : Number(text);
      return Number.isInteger(value) && value >= 0 && value < below ? value : null;
    };
    const oneOf = (key, known) => { if (known.includes(said.get(key))) chosen[key] = said.get(key); };
    const times = (said.get('t') || '').split(',').map(Number);
    if (times.length === 2 && times.every(Number.isFinite)) {
      const [from, to] = times.map((time) => state.edge(model, time));
      if (from < to) [chosen.from, chosen.to] = [from, to];
    }
    if (inlined.isIn(model.data)) oneOf('inlined', state.inlinings);
    const { count } = state.model(model, chosen);
    chosen.thread = number(said.get('thread'), model.data.threads.length);
    chosen.zoom = number(said.get('zoom'), count) || 0;
    chosen.fn = number(said.get('fn'), model.functions) || null;
    chosen.find = said.get('find') || '';
    oneOf('view', state.views);
    oneOf('group', state.groups);
    oneOf('sort', state.sorts);
    oneOf('color', state.colors.filter((color) => color !== 'change' || model.data.older));
    oneOf('stack', state.stacks.filter((stack) => stack === 'domain' || model.data.weight === 'joules'));
    chosen.rises = said.get('rises') === '1';
    for (const text of (said.get('open') || '').split(',')) {
      const node = number(text, count);
      if (node) chosen.opened.add(node);
    }
    return chosen;
  },

  // The model in which what was chosen is seen. The one without inlined functions is made when it is first asked for.
  model(apart, chosen) {
    return chosen.inlined === 'into' && inlined.isIn(apart.data) ? state.without(apart) : apart;
  },

  without(apart) {
    return (apart.without ||= part.withWatts(inlined.without(apart)));
  },

  // What is chosen, if inlined functions are told apart or not: the same places, as far as there are such.
  inline(apart, chosen, how) {
    if (chosen.inlined === how || !inlined.isIn(apart.data)) return {};
    const { place, origin } = state.without(apart);
    const map = how === 'into' ? place : origin;
    const isGone = chosen.fn !== null && how === 'into' && inlined.is(apart.data.functions, chosen.fn);
    return { inlined: how, zoom: map[chosen.zoom], fn: isGone ? null : chosen.fn, opened: new Set([...chosen.opened].map((node) => map[node])) };
  },

  // The edge between slices that is nearest to a time.
  edge(model, time) {
    let best = 0;
    for (let at = 1; at < model.edges.length; at++) {
      if (Math.abs(model.edges[at] - time) < Math.abs(model.edges[best] - time)) best = at;
    }
    return best;
  },
};
