// The page's data, and the sums that are drawn of it. Nothing here knows of a document, so that it can be tested
// without one. Weights are whole numbers, which add up exactly in any order: see `unit` of the data.
const profile = {
  // The data with its lists as arrays. A page is seen only after this: plain loops take a fifth of what callbacks do that
  // run for the first time.
  unpack(data) {
    const count = data.up.length;
    const parent = new Uint32Array(count);
    const depth = new Uint32Array(count);
    for (let node = 1; node < count; node++) {
      parent[node] = node - data.up[node];
      depth[node] = depth[parent[node]] + 1;
    }
    const fn = new Uint32Array(data.node_functions);
    const leaves = profile.unpackLeaves(data.leaves, fn);
    const model = {
      data, count, parent, depth, fn, leaves,
      isApart: leaves.inTree.includes(0),
      edges: new Float64Array(data.slices.edges),
      slices: data.slices.own.length,
      own: data.slices.own.map((list, slice) => profile.pairs(list, data.slices.times[slice])),
      untimed: profile.pairs(data.slices.untimed, data.slices.untimed_times),
      functions: data.functions.name.length,
    };
    profile.markOutermost(model);
    return model;
  },

  // What is a function's alone lies in no node, and what is a node's alone is of no function: of these the data says
  // everything twice.
  unpackLeaves(data, fnOfNode) {
    const count = data.node.length;
    const [node, fn] = [new Uint32Array(count), new Uint32Array(count)];
    const [inTree, inFunctions] = [new Uint8Array(count), new Uint8Array(count)];
    for (let leaf = 0, place = 0; leaf < count; leaf++) {
      place += data.node[leaf];
      node[leaf] = Math.max(place - 1, 0);
      inTree[leaf] = place > 0 ? 1 : 0;
      const of = data.function[leaf];
      inFunctions[leaf] = of !== 1 ? 1 : 0;
      fn[leaf] = of === 0 ? fnOfNode[node[leaf]] : Math.max(of - 2, 0);
    }
    return { count, node, fn, thread: new Uint32Array(data.thread), inTree, inFunctions };
  },

  // Pairs of leaf and weight, of leaves that are told by their distances, and the CPU times of the first of them.
  pairs(list, times) {
    const leaf = new Uint32Array(list.length / 2);
    const weight = new Float64Array(list.length / 2);
    for (let at = 0, before = 0; at < leaf.length; at++) {
      leaf[at] = before += list[2 * at];
      weight[at] = list[2 * at + 1];
    }
    return { leaf, weight, time: new Float64Array(times) };
  },

  // A function that calls itself counts once: where it is not below itself.
  markOutermost(model) {
    const { parent, fn, leaves } = model;
    const isBelow = (node, wanted) => {
      while (node !== 0 && fn[node] !== wanted) node = parent[node];
      return node !== 0;
    };
    // A function that has one node alone is not below itself.
    const nodes = new Uint32Array(model.functions);
    for (let node = 1; node < model.count; node++) nodes[fn[node]] += 1;
    model.outermost = new Uint8Array(model.count);
    for (let node = 1; node < model.count; node++) model.outermost[node] = nodes[fn[node]] < 2 || !isBelow(parent[node], fn[node]) ? 1 : 0;
    // Of leaves whose own branch is too light to be drawn.
    model.leafAdds = new Uint8Array(leaves.count);
    for (let leaf = 0; leaf < leaves.count; leaf++) {
      const own = leaves.fn[leaf];
      model.leafAdds[leaf] = nodes[own] > 0 && isBelow(leaves.node[leaf], own) ? 0 : 1;
    }
  },

  isWhole(model, from, to) {
    return from === 0 && to === model.slices;
  },

  // Weights of leaves, nodes and functions in a stretch of time. Those of the whole are asked for again and again.
  sums(model, from, to, thread) {
    if (thread === null && profile.isWhole(model, from, to)) return (model.whole ||= profile.sumsOf(model, from, to, null));
    return profile.sumsOf(model, from, to, thread);
  },

  sumsOf(model, from, to, thread) {
    const leaves = profile.leaves(model, from, to, thread);
    const nodes = profile.nodes(model, leaves);
    return { leaves, nodes, functions: profile.functions(model, leaves, nodes) };
  },

  // Weight of each leaf in the slices from..to (to not included), in one thread or in all. What has no time is part
  // of the whole alone.
  leaves(model, from, to, thread = null) {
    const sums = new Float64Array(model.leaves.count);
    const add = ({ leaf, weight }) => {
      for (let at = 0; at < leaf.length; at++) sums[leaf[at]] += weight[at];
    };
    for (let slice = from; slice < to; slice++) add(model.own[slice]);
    if (profile.isWhole(model, from, to)) add(model.untimed);
    if (thread !== null) {
      for (let leaf = 0; leaf < sums.length; leaf++) if (model.leaves.thread[leaf] !== thread) sums[leaf] = 0;
    }
    return sums;
  },

  // Own weight of each node, and with all below it. Parents come before their children.
  nodes(model, leaves) {
    const own = new Float64Array(model.count);
    for (let leaf = 0; leaf < leaves.length; leaf++) if (model.leaves.inTree[leaf]) own[model.leaves.node[leaf]] += leaves[leaf];
    const total = Float64Array.from(own);
    for (let node = model.count - 1; node > 0; node--) total[model.parent[node]] += total[node];
    return { own, total };
  },

  // Own and total weight of each function.
  functions(model, leaves, nodes) {
    const own = new Float64Array(model.functions);
    const total = new Float64Array(model.functions);
    for (let node = 1; node < model.count; node++) if (model.outermost[node]) total[model.fn[node]] += nodes.total[node];
    for (let leaf = 0; leaf < leaves.length; leaf++) {
      if (!model.leaves.inFunctions[leaf]) continue;
      own[model.leaves.fn[leaf]] += leaves[leaf];
      if (model.leafAdds[leaf]) total[model.leaves.fn[leaf]] += leaves[leaf];
    }
    return { own, total };
  },

  // Sums of weights by what `key` says of each.
  by(weights, count, key) {
    const sums = new Float64Array(count);
    for (let at = 0; at < weights.length; at++) sums[key(at)] += weights[at];
    return sums;
  },

  threads(model, leaves) {
    const sums = new Float64Array(model.data.threads.length);
    for (let leaf = 0; leaf < leaves.length; leaf++) if (model.leaves.inTree[leaf]) sums[model.leaves.thread[leaf]] += leaves[leaf];
    return sums;
  },

  // What a function took itself in each thread.
  threadsOf(model, leaves, fn) {
    const sums = new Float64Array(model.data.threads.length);
    for (let leaf = 0; leaf < leaves.length; leaf++) {
      if (model.leaves.fn[leaf] === fn && model.leaves.inFunctions[leaf]) sums[model.leaves.thread[leaf]] += leaves[leaf];
    }
    return sums;
  },

  // What each CPU took in each slice, as `own` has it of leaves.
  cpuSlices(model) {
    const each = (pairs, which) => pairs.filter((_, at) => at % 2 === which);
    return model.data.slices.cpus.map((pairs) => ({ leaf: each(pairs, 0), weight: each(pairs, 1) }));
  },

  cpus(model, from, to) {
    const sums = new Float64Array(model.data.cpus.length);
    for (let slice = from; slice < to; slice++) {
      const pairs = model.data.slices.cpus[slice];
      for (let at = 0; at < pairs.length; at += 2) sums[pairs[at]] += pairs[at + 1];
    }
    return sums;
  },

  // What is in or below a function that `matches`, counted once. Where the data tells nodes and functions apart, no
  // more than that is known of branches that are not drawn.
  matched(model, leaves, matches) {
    const isBelow = new Uint8Array(model.count);
    for (let node = 1; node < model.count; node++) isBelow[node] = isBelow[model.parent[node]] || matches[model.fn[node]];
    const { node, fn, inTree, inFunctions } = model.leaves;
    let [sum, all] = [0, 0];
    for (let leaf = 0; leaf < leaves.length; leaf++) {
      if (inTree[leaf]) all += leaves[leaf];
      if ((inTree[leaf] && isBelow[node[leaf]]) || (inFunctions[leaf] && matches[fn[leaf]])) sum += leaves[leaf];
    }
    return Math.min(sum, all);
  },

  // Whether each function matches a text: a regular expression if it is one, in which capitals count if it has any.
  matches(model, text) {
    const matches = new Uint8Array(model.functions);
    if (text === '') return { matches, isPattern: true };
    const { name, module } = model.data.functions;
    const flags = /[A-Z]/.test(text) ? 'u' : 'iu';
    let pattern;
    let isPattern = true;
    try {
      pattern = new RegExp(text, flags);
    } catch {
      pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), flags);
      isPattern = false;
    }
    for (let fn = 1; fn < model.functions; fn++) {
      matches[fn] = pattern.test(name[fn]) || (module[fn] !== 0 && pattern.test(model.data.modules[module[fn] - 1])) ? 1 : 0;
    }
    return { matches, isPattern };
  },

  measured(model, slice) {
    const { domains, slices } = model.data;
    return domains.reduce((sum, domain, index) => sum + (domain.counted ? slices.measured[slice][index] : 0), 0);
  },

  // Joules of each slice by domain, those of domains without what the domains inside them have. Meters are not read at
  // one instant: what lies inside seems to have had more than the whole at times, and is then all of it.
  domains(model) {
    const { domains, slices } = model.data;
    const inside = domains.map((_, index) => domains.flatMap((other, at) => (other.parent === index ? [at] : [])));
    const isShown = (index) => domains[index].counted || (domains[index].parent !== null && isShown(domains[index].parent));
    const joules = domains.map(() => new Float64Array(model.slices));
    const divide = (slice, index, whole) => {
      const parts = inside[index].map((part) => Math.max(slices.measured[slice][part], 0));
      const sum = parts.reduce((a, b) => a + b, 0);
      const share = sum > whole && sum > 0 ? whole / sum : 1;
      joules[index][slice] = Math.max(whole - sum * share, 0);
      inside[index].forEach((part, at) => divide(slice, part, parts[at] * share));
    };
    for (let slice = 0; slice < model.slices; slice++) {
      domains.forEach((domain, index) => { if (domain.counted) divide(slice, index, slices.measured[slice][index]); });
    }
    // The innermost below.
    const order = domains.map((_, index) => index).filter(isShown).sort((a, b) => domains[b].depth - domains[a].depth || a - b);
    return order.map((index) => ({ name: inside[index].length > 0 ? `${domains[index].name}, the rest` : domains[index].name, joules: joules[index] }));
  },

  // What went to no function in a slice, by kind, in joules. Over single slices rounding and the times at which meters
  // are read may leave a little more or less than what is missing: the parts are scaled to that.
  unattributed(model, slice, attributed) {
    const { slices } = model.data;
    const known = ['static', 'others', 'eprof', 'lost'].map((part) => Math.max(slices[part][slice], 0));
    const sum = known.reduce((a, b) => a + b, 0);
    const missing = Math.max(profile.measured(model, slice) - attributed, 0);
    if (!(sum > 0)) return [0, 0, 0, missing];
    return known.map((joules) => joules * missing / sum);
  },

  // Joules of each slice by keys: of the `most` heaviest keys, of the others, and of what went to no function. A slice
  // has its leaves, or CPUs, and their weights; `keys` tells the key of each of them, -1 where it does not count.
  stack(model, slices, keys, most, heaviest) {
    const unit = model.data.unit;
    const shown = heaviest.slice(0, most);
    const place = new Map(shown.map((key, at) => [key, at]));
    const rows = keys.map((key) => (key < 0 ? -1 : place.get(key) ?? shown.length));
    const series = Array.from({ length: shown.length + 5 }, () => new Float64Array(model.slices));
    slices.forEach(({ leaf, weight }, slice) => {
      const sums = new Float64Array(shown.length + 1);
      for (let at = 0; at < leaf.length; at++) {
        const row = rows[leaf[at]];
        if (row >= 0) sums[row] += weight[at];
      }
      sums.forEach((sum, row) => { series[row][slice] = sum / unit; });
      const attributed = sums.reduce((a, b) => a + b, 0) / unit;
      profile.unattributed(model, slice, attributed).forEach((joules, part) => {
        series[shown.length + 1 + part][slice] = joules;
      });
    });
    return { shown, series };
  },

  // Keys with any weight, the heaviest first.
  heaviest(weights) {
    const keys = Array.from(weights.keys()).filter((key) => weights[key] > 0);
    return keys.sort((a, b) => weights[b] - weights[a] || a - b);
  },

  // What an older recording took at the same nodes, itself and with all that they called, also where this one has no node, and
  // in the same functions; null without one.
  older(model) {
    const { older } = model.data;
    if (!older) return null;
    const own = new Float64Array(model.count);
    const inAll = new Float64Array(model.count);
    for (const [node, weight] of older.own) own[node] += weight;
    for (const [node, weight] of [...older.own, ...older.below]) inAll[node] += weight;
    for (let node = model.count - 1; node > 0; node--) inAll[model.parent[node]] += inAll[node];
    const functions = new Map(older.functions.map(([fn, ownWeight, error, total]) => [fn, { own: ownWeight, error, total }]));
    return { own, inAll, functions, total: older.total };
  },
};
