// Two recordings: what changed, with its error.
'use strict';
const assert = require('assert');

// Each place of the tree has a change and a color of its own; what chance explains has none.
async function places(page, data, older) {
  const here = data.up.map(() => 0);
  // With all that is drawn as part of it, and that it called.
  const inAll = data.up.map(() => 0);
  let before = 0;
  const ofLeaf = data.leaves.node.map((step, leaf) => [(before += step) - 1, data.leaves.function[leaf]]);
  for (const list of [...data.slices.own, data.slices.untimed]) {
    for (let at = 0, leaf = 0; at < list.length; at += 2) {
      const [node, said] = ofLeaf[leaf += list[at]];
      if (said === 0) here[node] += list[at + 1];
      if (node >= 0) inAll[node] += list[at + 1];
    }
  }
  const was = data.up.map(() => 0);
  for (const [node, weight] of data.older.own) was[node] += weight;
  for (const [node, weight] of [...data.older.own, ...data.older.below]) inAll[node] -= weight;
  for (let node = inAll.length - 1; node > 0; node--) inAll[node - data.up[node]] += inAll[node];
  const totals = await page.run('Array.from({ length: eprof.model.count }, (_, node) => eprof.changes.atTotal(node)[0])');
  totals.forEach((change, node) => assert.ok(Math.abs(change - inAll[node]) < 1e-6, `place ${node} with all that it called`));
  // All of the older recording is somewhere.
  const rounding = (data.older.own.length + data.older.below.length + data.up.length) / 2 + 1;
  assert.ok(Math.abs(totals[0] - (data.functions.total[0] - data.older.total)) <= rounding, `all changed by ${totals[0]}`);
  const found = await page.run('Array.from({ length: eprof.model.count }, (_, node) => [...eprof.changes.at(node), flame.color(eprof, eprof.model.fn[node], node)])');
  const [largest, colors] = await page.run('[eprof.changes.largest, look.changes()]');
  assert.ok(largest >= 0.05 * Math.max(data.older.total, data.functions.total[0]));
  found.slice(1).forEach(([change, error, color], at) => {
    const [node, fn] = [at + 1, data.node_functions[at + 1]];
    const what = `${data.functions.name[fn]}, place ${node}`;
    assert.strictEqual(change, here[node] - was[node], what);
    // All of a function's joules are as sure as the function's, less are surer, and no part is surer than its share.
    const whole = Math.hypot(data.functions.alone[fn], (older.get(fn) || { error: 0 }).error);
    assert.ok(error <= whole * 1.000001, `${what}: ${error} of ${whole}`);
    if (here[node] === data.functions.own[fn] && was[node] === (older.get(fn) || { own: 0 }).own) assert.ok(Math.abs(error - whole) < 1e-6 * whole + 1e-9, what);
    assert.ok(Math.abs(change) <= largest || Math.abs(change) <= 2 * error, what);
    const isSeen = JSON.stringify(color) !== JSON.stringify(colors[2]);
    if (Math.abs(change) <= 2 * error) assert.ok(!isSeen, `${what} is no change`);
    // Red is more, blue is less.
    else if (Math.abs(change) > largest / 100) assert.strictEqual(Math.sign(color[0] - color[2]), Math.sign(change), `${what}: ${color}`);
  });
  assert.ok(found.some(([change, error]) => Math.abs(change) > 2 * error), 'something changed');
}

module.exports = async (page, data) => {
  const rows = await page.run('table.rows.map(({ key, name, own, change, changeError, totalChange }) => ({ key, name, own, change, changeError, totalChange }))');
  const older = new Map(data.older.functions.map(([fn, own, error, total]) => [fn, { own, error, total }]));
  let sum = 0;
  for (const { key, name, change, changeError, totalChange } of rows) {
    const before = key === null ? data.older.gone.find((gone) => gone.name === name) : older.get(key) || { own: 0, error: 0, total: 0 };
    const now = key === null ? { own: 0, error: 0, total: 0 } : { own: data.functions.own[key], error: data.functions.alone[key], total: data.functions.total[key] };
    assert.strictEqual(change, now.own - before.own, name);
    assert.strictEqual(totalChange, now.total - before.total, name);
    assert.ok(Math.abs(changeError - Math.hypot(now.error, before.error)) < 1e-6, name);
    sum += change;
  }
  const whole = data.functions.own.reduce((a, b) => a + b) - data.older.total;
  assert.ok(Math.abs(sum - whole) <= rows.length, `${sum} changed of ${whole}`);
  const sizes = rows.map(({ change }) => Math.abs(change));
  assert.deepStrictEqual(sizes, [...sizes].sort((a, b) => b - a), 'what changed most comes first');
  assert.match(await page.run('document.querySelector("#body td.change").textContent'), /[+−][0-9.]+( ± [0-9.]+)?/);
  assert.strictEqual(await page.run('document.getElementById("color").value'), 'change');
  // Both say of what they are, in the table and of a function and a place.
  const titles = await page.run('[...document.querySelectorAll("#head th")].map((cell) => cell.textContent)');
  assert.ok(titles.includes('self change') && titles.includes('total change'), titles.join());
  const caller = rows.find(({ key, own, totalChange }) => key !== null && own < data.functions.total[key] && totalChange !== 0);
  // The recording of the tests has no callers.
  assert.ok(caller || data.weight === 'joules');
  if (caller) {
    await page.run(`eprof.choose({ fn: ${caller.key} })`);
    assert.match(await page.run('document.getElementById("details").textContent'), /[+−][0-9.,]+ [a-zµ]*(J|samples) with all that it called since the older recording/);
    const said = await page.run(`flame.describe(eprof, flame.places.find(({ fn, box }) => fn === ${caller.key} && box.chain.length === 1))[1].join(' | ')`);
    assert.match(said, /[+−][0-9.,]+ [a-zµ]*(J|samples) here, with all that it called, since the older recording/);
    await page.run('eprof.choose({ fn: null })');
  }
  await places(page, data, older);
  if (data.weight !== 'joules') {
    const text = await page.run('[document.querySelector("#body td.change").textContent, table.rows[0].change]');
    assert.strictEqual(Number(text[0].replace('−', '-').replaceAll(',', '')), text[1], 'numbers of samples are told as they are');
    return;
  }
  // Of a part of the time nobody can say what it was before.
  await page.run('eprof.choose({ from: 0, to: 1 })');
  assert.strictEqual(await page.run('table.rows.filter((row) => row.change !== null).length'), 0);
};
