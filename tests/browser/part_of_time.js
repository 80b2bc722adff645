// What is said of a part of the time: errors and watts of its own, by hand on a small recording and by another way on the
// page's.
'use strict';
const assert = require('assert');

const near = (found, expected, what, share = 1e-9) => assert.ok(Math.abs(found - expected) <= share * Math.abs(expected) + 1e-12, `${what}: ${found}, not ${expected}`);

// Two functions in four pieces of a second; the third is alone in the last. Joules are units, times are in milliseconds.
const small = {
  unit: 1, time_unit: 1000, weight: 'joules', threads: ['a', 'b'], cpus: ['CPU 0'], modules: [],
  domains: [{ counted: true, refresh: 0.1, resolution: 0 }, { counted: false, refresh: 9, resolution: 9 }],
  up: [0, 1, 2], node_functions: [0, 1, 2], leaves: { node: [2, 1], function: [0, 0], thread: [0, 1] },
  functions: { name: ['all', 'f', 'g'], module: [0, 0, 0], own: [0, 40, 60], error: [0, 13, 5], alone: [0, 13, 5], chance: [0, 12, 0], total: [100, 40, 60], watts: [0, 20, 30] },
  slices: {
    edges: [0, 1, 2, 3, 4], untimed: [], untimed_times: [], measured: [[30, 7], [30, 7], [30, 7], [30, 7]],
    own: [[0, 10, 1, 10], [0, 10, 1, 30], [0, 20], [1, 20]], times: [[500, 250], [500], [250], [250]],
  },
};

module.exports = async (page, data) => {
  const of = (from, to, thread, which = 'errors') => page.run(`(() => {
    const model = profile.unpack(${JSON.stringify(small)});
    const leaves = profile.leaves(model, ${from}, ${to}, ${thread});
    const { own } = profile.functions(model, leaves, profile.nodes(model, leaves));
    return [...part.${which}(model, ${from}, ${to}, ${thread}, own)];
  })()`);
  assert.deepStrictEqual(await of(0, 4, null), small.functions.error, 'the whole has the errors of the whole');
  // 120 J in 4 s are 30 W, of which an end may be off by 3 J; both by 3 J / sqrt(6). 40 of 100 units are f's.
  const ends = 3 / Math.sqrt(6);
  // f takes turns in two pieces: 10 units where half are others', 10 where three quarters are; alone it has none.
  // Of its variance, 144 are by chance, and 25 less that of the ends are of a share.
  const share = 13 ** 2 - 12 ** 2 - (ends * 0.4) ** 2;
  const first = 144 * 5 / 12.5 + (ends * 10 / 20) ** 2 + share * (10 / 40) ** 2;
  near((await of(0, 1, null))[1], Math.sqrt(first), 'the first piece');
  const alone = (ends * 20 / 20) ** 2 + share * (20 / 40) ** 2;
  near((await of(2, 3, null))[1], Math.sqrt(alone), 'where f runs alone');
  assert.strictEqual((await of(3, 4, null))[1], 0, 'where f does not run');
  // Halves: what is by chance adds up as squares do, what is of a share adds up as joules do.
  const halves = [(await of(0, 2, null))[1], (await of(2, 4, null))[1]];
  near(halves[0] ** 2, 144 + (ends * 20 / 60) ** 2 + share / 4, 'the first half');
  near(halves[1] ** 2, (ends * 20 / 40) ** 2 + share / 4, 'the second half');
  // All the time of g's thread: its own part of the errors of g, which is all of them.
  near((await of(0, 4, 1))[2], 5, 'one thread');
  // Watts: joules over CPU time.
  assert.deepStrictEqual(await of(0, 4, null, 'watts'), small.functions.watts);
  assert.deepStrictEqual(await of(0, 2, null, 'watts'), [0, 20, 160]);
  assert.deepStrictEqual(await of(2, 3, null, 'watts'), [0, 80, 0]);
  // Of places of the tree: 60 units of g in half a second; of f's 40, which took 1.25 s, 12 are by chance, which is too much.
  const places = (changed) => page.run(`(() => {
    const { own, watts } = part.nodes(profile.unpack(${JSON.stringify(changed)}), 0, 4, null);
    return [[...own], [...watts]];
  })()`);
  assert.deepStrictEqual(await places(small), [[0, 40, 60], [0, 0, 120]]);
  const surer = { ...small, functions: { ...small.functions, chance: [0, 9, 0] } };
  assert.deepStrictEqual(await places(surer), [[0, 40, 60], [0, 32, 120]]);

  // The page itself. Marking all of the time changes nothing, and all of its rows are there in the table.
  const slices = data.slices.own.length;
  const shown = () => page.run('table.rows.map(({ key, own, error, watts }) => ({ key, own, error, watts }))');
  const whole = await shown();
  for (const { key, error, watts } of whole) {
    assert.strictEqual(error, data.functions.error[key]);
    assert.strictEqual(watts, data.functions.watts[key]);
  }
  const half = Math.floor(slices / 2);
  const byKey = (rows) => new Map(rows.map((row) => [row.key, row]));
  await page.run(`eprof.choose({ from: 0, to: ${half} })`);
  const before = byKey(await shown());
  await page.run(`eprof.choose({ from: ${half}, to: ${slices} })`);
  const after = byKey(await shown());
  await page.run(`eprof.choose({ from: 0, to: ${slices} })`);
  const none = { own: 0, error: 0, watts: 0 };
  const heavy = whole.filter(({ own }) => own > 0.05 * data.functions.total[0]);
  assert.ok(heavy.length > 0);
  for (const { key, own, error, watts } of heavy) {
    const halves = [before, after].map((rows) => rows.get(key) || none);
    // Two parts together are no surer than the whole, and none of them is less sure than the whole but for its ends.
    const sum = halves[0].error + halves[1].error;
    assert.ok(sum >= error * 0.999 - 2, `${data.functions.name[key]}: ${sum} of halves, ${error} of the whole`);
    // The mean of the halves' watts, by time, is the whole's.
    if (watts > 0) {
      const seconds = halves.reduce((all, half) => all + (half.watts > 0 ? half.own / half.watts : 0), 0);
      const timed = halves.reduce((all, half) => all + (half.watts > 0 ? half.own : 0), 0);
      if (timed > 0.99 * own) near(timed / seconds, watts, `watts of ${data.functions.name[key]}`, 0.02);
    }
  }
};
