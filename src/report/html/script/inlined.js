// The same data if what the compiler put into a function is that function's, as `eprof report` says it: inlined functions
// have no nodes and no joules of their own then.
const inlined = {
  // Of programs, or of the kernel.
  is(functions, fn) {
    return 'il'.includes(functions.class[fn]);
  },

  // Something was put into something.
  isIn(data) {
    return Boolean(data.functions.without_inlined || data.older?.without_inlined);
  },

  // A model that has the same leaves, pieces of time and numbers of functions; `place` tells of each node where it is now,
  // and `origin` of each of these the first that it was. Null if nothing was put into anything.
  without(model) {
    const { data } = model;
    const isInlined = (fn) => inlined.is(data.functions, fn);
    if (!inlined.isIn(data)) return null;
    const place = new Uint32Array(model.count);
    const [parent, fn, depth, origin] = [[0], [model.fn[0]], [0], [0]];
    const children = new Map();
    for (let node = 1; node < model.count; node++) {
      const above = place[model.parent[node]];
      if (isInlined(model.fn[node])) {
        place[node] = above;
        continue;
      }
      const key = above * 0x1000000 + model.fn[node];
      let child = children.get(key);
      if (child === undefined) {
        children.set(key, child = parent.length);
        parent.push(above);
        fn.push(model.fn[node]);
        depth.push(depth[above] + 1);
        origin.push(node);
      }
      place[node] = child;
    }
    const made = {
      ...model, count: parent.length, parent: Uint32Array.from(parent), depth: Uint32Array.from(depth), fn: Uint32Array.from(fn),
      place, origin, leaves: inlined.leaves(model, place, fn, isInlined), whole: null, placesOfWhole: null, ofWhole: null,
      data: { ...data, functions: inlined.functions(data.functions, isInlined), older: data.older && inlined.older(data.older, place, isInlined) },
    };
    profile.markOutermost(made);
    return made;
  },

  leaves({ data, leaves, fn: fnOfNode }, place, fnOfPlace, isInlined) {
    const node = leaves.node.map((of) => place[of]);
    const putInto = new Map(data.leaves.put_into || []);
    // What is drawn lies in what it was put into; of what is not the data says that.
    const fn = leaves.fn.map((of, leaf) => {
      if (!isInlined(of)) return of;
      return putInto.get(leaf) ?? (leaves.inTree[leaf] && of === fnOfNode[leaves.node[leaf]] ? fnOfPlace[node[leaf]] : of);
    });
    return { ...leaves, node, fn };
  },

  functions(functions, isInlined) {
    const made = { ...functions };
    for (const column of ['own', 'error', 'alone', 'chance', 'total', 'watts']) made[column] = functions[column].map((value, fn) => (isInlined(fn) ? 0 : value));
    const other = functions.without_inlined || { function: [] };
    other.function.forEach((fn, at) => {
      for (const column of ['own', 'error', 'alone', 'chance', 'watts']) made[column][fn] = other[column][at];
    });
    return made;
  },

  older(older, place, isInlined) {
    const plain = new Map((older.without_inlined || []).map(([fn, own, error]) => [fn, [own, error]]));
    const gone = older.gone.filter((row) => row.without_inlined);
    return {
      ...older,
      functions: older.functions.filter(([fn]) => !isInlined(fn)).map(([fn, own, error, total]) => [fn, ...(plain.get(fn) || [own, error]), total]),
      gone: gone.map((row) => ({ ...row, own: row.without_inlined[0], error: row.without_inlined[1] })),
      own: older.own.map(([node, weight]) => [place[node], weight]),
      below: older.below.map(([node, weight]) => [place[node], weight]),
    };
  },
};
