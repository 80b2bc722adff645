// What a recording has more than an older one. A change is a pair: of weights, and its standard error, which is known of
// joules. Nothing here knows of a document.
const change = {
  // The share of the whole that a change has at least to be drawn in the strongest color: one of a few percent is not to look
  // as if it were all there is.
  leastScale: 0.05,

  // Where there is nothing to compare: no older recording, or a part of the time alone.
  none: { of: () => null, at: () => null, ofTotal: () => null, atTotal: () => null, largest: 0 },

  // Of each function and of each place of the tree; `here` is what places took themselves, `inAll` with all that they called,
  // of which no error is known.
  between(model, older, here, inAll) {
    if (!older) return change.none;
    // Errors of causes that one recording has alone: no change comes of watts that were assumed of both.
    const { own, alone: error, total } = model.data.functions;
    const before = (fn) => older.functions.get(fn) || { own: 0, error: 0, total: 0 };
    const of = (fn) => [own[fn] - before(fn).own, Math.hypot(error[fn], before(fn).error)];
    const at = (node) => {
      const [fn, was] = [model.fn[node], older.own[node]];
      const earlier = before(fn);
      return [here[node] - was, Math.hypot(part.mostError(error[fn], here[node], own[fn]), part.mostError(earlier.error, was, earlier.own))];
    };
    let largest = Math.max(total[0], older.total) * change.leastScale;
    for (let fn = 1; fn < own.length; fn++) largest = Math.max(largest, change.certain(of(fn)));
    for (let node = 1; node < model.count; node++) largest = Math.max(largest, change.certain(at(node)));
    return { of, at, ofTotal: (fn) => [total[fn] - before(fn).total, 0], atTotal: (node) => [inAll[node] - older.inAll[node], 0], largest };
  },

  // The size of a change that is no matter of chance.
  certain([size, error]) {
    return Math.abs(size) > 2 * error ? Math.abs(size) : 0;
  },

  // For people; null where there is none. `amount` writes a weight and its error.
  text(found, where, amount) {
    if (found === null) return null;
    const [size, error] = found;
    return `${size < 0 ? '−' : '+'}${amount(Math.abs(size), error)}${where && ' '}${where} since the older recording${size === 0 || change.certain(found) > 0 ? '' : ': within two standard errors'}`;
  },
};
