// The sums of a page, added up in another way than the page does: path by path.
'use strict';
const assert = require('assert');

// Weights of paths in the pieces of time from..to: functions from the root on, the innermost one, thread, and weight.
function paths(data, from, to) {
  const parent = data.up.map((up, node) => node - up);
  const nodePath = (node) => (node <= 0 ? [] : [...nodePath(parent[node]), data.node_functions[node]]);
  let before = 0;
  const putInto = new Map(data.leaves.put_into || []);
  const leaves = data.leaves.node.map((step, leaf) => {
    const node = (before += step) - 1;
    const path = nodePath(node);
    const said = data.leaves.function[leaf];
    if (said === 1 || node < 0) throw new Error('the page tells nodes and functions apart');
    const innermost = said === 0 ? path[path.length - 1] ?? 0 : said - 2;
    return { path, innermost, putInto: putInto.get(leaf), thread: data.leaves.thread[leaf], weight: 0 };
  });
  const add = (pairs) => {
    for (let at = 0, leaf = 0; at < pairs.length; at += 2) leaves[leaf += pairs[at]].weight += pairs[at + 1];
  };
  data.slices.own.slice(from, to).forEach(add);
  if (from === 0 && to === data.slices.own.length) add(data.slices.untimed);
  return leaves.filter(({ weight }) => weight > 0);
}

const sum = (weights) => weights.reduce((all, { weight }) => all + weight, 0);

// Whether weights are equal: each leaf is rounded to whole units.
function nearness(data) {
  const rounding = data.leaves.node.length / 2 + 1;
  return (a, b, what) => assert.ok(Math.abs(a - b) <= rounding, `${what}: ${a} and ${b}`);
}

// Chooses a stretch of time: the table, the tree and the paths say the same of it.
async function agreement(page, data, from, to, what, expected = paths(data, from, to)) {
  const near = nearness(data);
  await page.run(`eprof.choose({ from: ${from}, to: ${to} })`);
  const { all, own, rows } = await page.run('({ all: eprof.sums.all, own: table.rows.reduce((all, row) => all + row.own, 0), rows: table.rows.map(({ key, own, total }) => [key, own, total]) })');
  near(all, sum(expected), `${what}: all`);
  near(own, sum(expected), `${what}: own`);
  for (const [key, ownWeight, total] of rows) {
    near(ownWeight, sum(expected.filter(({ innermost }) => innermost === key)), `${what}: own of ${data.functions.name[key]}`);
    near(total, sum(expected.filter(({ path, innermost }) => innermost === key || path.includes(key))), `${what}: total of ${data.functions.name[key]}`);
  }
}

module.exports = { agreement, nearness, paths, sum };
