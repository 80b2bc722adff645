// How sure the joules of functions are in a part of the recording, and their power there. Nothing here knows of a
// document.
//
// The whole recording tells three kinds of error of each function, whose squares add up:
//  - by chance, from sample to sample. Chance has no memory: the square of a part's is its part of the whole's. It lies
//    where the function takes turns with others, and not where it runs alone: each piece of time counts as the
//    function's weight there times the share of the piece that others have.
//  - at the two ends of the time, of which meters do not tell when they moved. Each stretch of time has two ends.
//  - by a share: of the power model, of assumed watts, of what code draws and no event tells. It is the same share of a
//    part.
const part = {
  // One standard error of each function's own weight.
  errors(model, from, to, thread, own) {
    const { error, chance, own: ofAll } = model.data.functions;
    if (thread === null && profile.isWhole(model, from, to)) return error;
    const whole = part.whole(model);
    const turns = part.turns(model, from, to, thread);
    const ends = part.ends(model, from, to);
    return Float64Array.from(error, (all, fn) => {
      if (!(all > 0) || !(own[fn] > 0)) return 0;
      const share = own[fn] / ofAll[fn];
      const alwaysOff = Math.max(all ** 2 - chance[fn] ** 2 - (whole.ends * ofAll[fn]) ** 2, 0);
      const byChance = chance[fn] ** 2 * (whole.turns[fn] > 0 ? turns[fn] / whole.turns[fn] : share);
      return Math.sqrt(byChance + (ends * own[fn]) ** 2 + alwaysOff * share ** 2);
    });
  },

  whole(model) {
    model.ofWhole ||= { turns: part.turns(model, 0, model.slices, null), ends: part.ends(model, 0, model.slices) };
    return model.ofWhole;
  },

  // By function: its weight in each piece of time, times the share of the piece that others have.
  turns(model, from, to, thread) {
    const sums = new Float64Array(model.functions);
    const { fn, thread: threads, inTree, inFunctions } = model.leaves;
    const inPiece = new Float64Array(model.functions);
    const ofThread = new Float64Array(model.functions);
    for (const { leaf, weight } of part.pieces(model, from, to)) {
      let all = 0;
      const seen = [];
      for (let at = 0; at < leaf.length; at++) {
        const of = leaf[at];
        if (inTree[of]) all += weight[at];
        if (!inFunctions[of]) continue;
        if (inPiece[fn[of]] === 0) seen.push(fn[of]);
        inPiece[fn[of]] += weight[at];
        if (thread === null || threads[of] === thread) ofThread[fn[of]] += weight[at];
      }
      for (const of of seen) {
        sums[of] += ofThread[of] * Math.max(1 - inPiece[of] / all, 0);
        inPiece[of] = ofThread[of] = 0;
      }
    }
    return sums;
  },

  // What has no time is part of the whole alone.
  pieces(model, from, to) {
    const pieces = model.own.slice(from, to);
    return profile.isWhole(model, from, to) ? [...pieces, model.untimed] : pieces;
  },

  // The error of the two ends of a stretch of time, as a share of what all functions took in it. Each end is wrong by a
  // uniform part of what flows from one reading of a meter to the next.
  ends(model, from, to) {
    const { domains, slices, unit } = model.data;
    const { inTree } = model.leaves;
    let all = 0;
    for (const { leaf, weight } of part.pieces(model, from, to)) {
      for (let at = 0; at < leaf.length; at++) if (inTree[leaf[at]]) all += weight[at];
    }
    const seconds = model.edges[to] - model.edges[from];
    if (!(all > 0) || !(seconds > 0)) return 0;
    let squares = 0;
    domains.forEach((domain, index) => {
      if (!domain.counted) return;
      let joules = 0;
      for (let slice = from; slice < to; slice++) joules += slices.measured[slice][index];
      squares += Math.max(joules / seconds * domain.refresh, domain.resolution) ** 2 / 6;
    });
    return Math.sqrt(squares) * unit / all;
  },

  // Watts of each function while its own code ran; 0 where nobody knows.
  watts(model, from, to, thread, own) {
    const { data } = model;
    const { watts } = data.functions;
    if (thread === null && profile.isWhole(model, from, to)) return watts;
    const times = new Float64Array(model.functions);
    const { fn, thread: threads, inFunctions } = model.leaves;
    for (const { leaf, time } of part.pieces(model, from, to)) {
      for (let at = 0; at < time.length; at++) {
        const of = leaf[at];
        if (inFunctions[of] && (thread === null || threads[of] === thread)) times[fn[of]] += time[at];
      }
    }
    return Float64Array.from(watts, (whole, of) => (whole > 0 && times[of] > 0 ? (own[of] / data.unit) / (times[of] / data.time_unit) : 0));
  },

  // The own weight and the watts of each place of the tree: one function may draw more in one place than in another, above
  // all one that was put into several. 0 watts where nobody knows, or chance decides.
  nodes(model, from, to, thread) {
    if (thread !== null || !profile.isWhole(model, from, to)) return part.nodesOf(model, profile.leaves(model, from, to, thread), from, to, thread);
    return (model.placesOfWhole ||= part.nodesOf(model, profile.sums(model, from, to, null).leaves, from, to, null));
  },

  // `leaves` has the weight of each leaf in the same stretch of time and thread.
  nodesOf(model, leaves, from, to, thread) {
    const { data } = model;
    const { watts, chance, own: ofAll } = data.functions;
    const own = new Float64Array(model.count);
    const times = new Float64Array(model.count);
    const { node, fn, thread: threads, inTree } = model.leaves;
    const isOwn = (of) => inTree[of] && fn[of] === model.fn[node[of]];
    for (let of = 0; of < leaves.length; of++) if (isOwn(of)) own[node[of]] += leaves[of];
    for (const { leaf, time } of part.pieces(model, from, to)) {
      for (let at = 0; at < time.length; at++) {
        const of = leaf[at];
        if (isOwn(of) && (thread === null || threads[of] === thread)) times[node[of]] += time[at];
      }
    }
    const known = (at, of) => watts[of] > 0 && times[at] > 0 && chance[of] <= part.mostChance * Math.sqrt(own[at] * ofAll[of]);
    const draws = new Float64Array(model.count);
    for (let at = 0; at < model.count; at++) if (known(at, model.fn[at])) draws[at] = (own[at] / data.unit) / (times[at] / data.time_unit);
    return { own, watts: draws };
  },

  // The lowest and highest power of own code, place by place. A hundredth of all joules belongs to code that ran too
  // shortly to tell its power, which would be all that is seen.
  withWatts(model) {
    const { own, watts } = part.nodes(model, 0, model.slices, null);
    const all = own.reduce((a, b) => a + b, 0);
    const known = Array.from(watts.keys()).filter((node) => watts[node] > 0).sort((a, b) => watts[a] - watts[b]);
    const edge = (order) => {
      let sum = 0;
      for (const node of order) if ((sum += own[node]) > all * 0.005) return watts[node];
      return 0;
    };
    model.watts = { low: edge(known), high: edge([...known].reverse()) };
    return model;
  },

  // The largest error that a part of a weight may have, of which all has this error: what comes of chance is the root of that
  // part as large, and all else is smaller.
  mostError(error, weight, all) {
    return weight > 0 ? error * Math.sqrt(weight / all) : 0;
  },

  // The square of an error by chance is, of a part of the weight, that part as large: the error of a place is so much of its
  // own joules at the most.
  mostChance: 0.25,
};
