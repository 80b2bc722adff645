// A page with inlined functions, which can be part of what they were put into: by hand on a small recording, and by another way
// on the page's own.
'use strict';
const assert = require('assert');
const { agreement, nearness, paths, sum } = require('./sums.js');

// main calls f and g; `put` was put into both, and calls leaf in f and in its other copy. Of f's copy one leaf is not
// drawn: the data says of which function it was part.
const small = {
  unit: 1, time_unit: 0, weight: 'joules', threads: ['a'], cpus: ['CPU 0'], modules: [], domains: [],
  //      all main f put leaf g put leaf
  up: [0, 1, 1, 1, 1, 4, 1, 1], node_functions: [0, 1, 2, 3, 4, 5, 3, 4],
  leaves: { node: [3, 1, 1, 1, 1, 1, -5], function: [0, 0, 0, 0, 0, 0, 5], thread: [0, 0, 0, 0, 0, 0, 0], put_into: [[6, 5]] },
  functions: {
    name: ['all', 'main', 'f', 'put', 'leaf', 'g'], class: 'anninn', module: [0, 0, 0, 0, 0, 0],
    own: [0, 0, 1, 7, 12, 8], error: [0, 0, 1, 2, 3, 4], alone: [0, 0, 1, 2, 3, 4], chance: [0, 0, 0, 0, 0, 0], total: [28, 28, 7, 19, 12, 21], watts: [0, 0, 0, 0, 0, 0],
    without_inlined: { function: [2, 5], own: [3, 13], error: [1.5, 4.5], alone: [1.5, 4.5], chance: [0, 0], watts: [0, 0] },
  },
  slices: { edges: [0, 1], untimed: [], untimed_times: [], measured: [[]], own: [[0, 1, 1, 2, 1, 4, 1, 8, 1, 5, 1, 8]], times: [[]] },
};

module.exports = async (page, data) => {
  const found = await page.run(`(() => {
    const apart = profile.unpack(${JSON.stringify(small)});
    const model = inlined.without(apart);
    const leaves = profile.leaves(model, 0, 1, null);
    const nodes = profile.nodes(model, leaves);
    const { own, total } = profile.functions(model, leaves, nodes);
    return {
      parent: [...model.parent], fn: [...model.fn], depth: [...model.depth], place: [...model.place], origin: [...model.origin],
      own: [...own], total: [...total], nodes: [...nodes.own], leaves: [...model.leaves.fn], said: model.data.functions.own, errors: model.data.functions.error,
      untouched: [[...apart.fn], apart.data.functions.own, [...apart.leaves.fn]],
    };
  })()`);
  //                                   all main f leaf g leaf
  assert.deepStrictEqual(found.parent, [0, 0, 1, 2, 1, 4]);
  assert.deepStrictEqual(found.fn, [0, 1, 2, 4, 5, 4]);
  assert.deepStrictEqual(found.depth, [0, 1, 2, 3, 2, 3]);
  assert.deepStrictEqual(found.place, [0, 1, 2, 2, 3, 4, 4, 5]);
  assert.deepStrictEqual(found.origin, [0, 1, 2, 4, 5, 7]);
  assert.deepStrictEqual(found.nodes, [0, 0, 3, 4, 13, 8]);
  assert.deepStrictEqual(found.own, [0, 0, 3, 0, 12, 13]);
  assert.deepStrictEqual(found.total, [0, 28, 7, 0, 12, 21]);
  assert.deepStrictEqual(found.leaves, [2, 2, 4, 5, 5, 4, 5]);
  assert.deepStrictEqual(found.said, [0, 0, 3, 0, 12, 13]);
  assert.deepStrictEqual(found.errors, [0, 0, 1.5, 0, 3, 4.5]);
  assert.deepStrictEqual(found.untouched, [small.node_functions, small.functions.own, [2, 3, 4, 5, 3, 4, 3]]);

  assert.ok(data.functions.without_inlined.function.length > 0 && data.functions.class.includes('i') && data.leaves.put_into.length > 0, 'the page has inlined functions, and some that are not drawn');
  assert.ok(!await page.run("document.getElementById('inlined').hidden"));

  // The page itself: as many joules, and none of an inlined function.
  const slices = data.slices.own.length;
  await page.run("look.byId('inlining').value = 'into', look.byId('inlining').dispatchEvent(new Event('change'))");
  assert.strictEqual(await page.run('eprof.state.inlined'), 'into');
  const isInlined = (fn) => 'il'.includes(data.functions.class[fn]);
  const into = (from, to) => paths(data, from, to).map((leaf) => {
    const path = leaf.path.filter((fn) => !isInlined(fn));
    return { ...leaf, path, innermost: isInlined(leaf.innermost) ? leaf.putInto ?? path[path.length - 1] ?? 0 : leaf.innermost };
  });
  const near = nearness(data);
  await agreement(page, data, 0, slices, 'inlined functions in others', into(0, slices));
  assert.ok(!(await page.run('table.rows.map(({ key }) => key)')).some(isInlined));
  const own = await page.run('table.rows.map(({ key, own }) => [key, own])');
  const said = new Map(data.functions.own.map((weight, fn) => [fn, weight]));
  data.functions.without_inlined.function.forEach((fn, at) => said.set(fn, data.functions.without_inlined.own[at]));
  for (const [key, weight] of own) near(weight, said.get(key), `${data.functions.name[key]}, in the recording`);
  // One place stays in sight, there and back, and in the address.
  const zoom = await page.run("(() => { const at = eprof.model.fn.findIndex((fn, node) => node > 0 && eprof.model.origin[node] !== node); return at < 0 ? 0 : at; })()");
  await page.run(`eprof.choose({ zoom: ${zoom} }), eprof.choose(state.inline(eprof.apart, eprof.state, 'apart'))`);
  assert.strictEqual(await page.run('eprof.model.without.place[eprof.state.zoom]'), zoom);
  await page.run("eprof.choose(state.inline(eprof.apart, eprof.state, 'into'))");
  assert.strictEqual(await page.run('eprof.state.zoom'), zoom);
  const written = await page.run('state.write(eprof.model, eprof.state)');
  assert.match(written, /inlined=into/);
  assert.deepStrictEqual(await page.run(`(({ inlined, zoom }) => [inlined, zoom])(state.read(eprof.apart, '#${written}'))`), ['into', zoom]);
  await page.run("eprof.choose({ ...state.inline(eprof.apart, eprof.state, 'apart'), zoom: 0, opened: new Set() })");
  await agreement(page, data, 0, slices, 'inlined functions apart again');
  assert.ok(sum(into(0, slices)) === sum(paths(data, 0, slices)));
};
