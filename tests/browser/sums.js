// The sums of a page, added up in another way than the page does: path by path.
'use strict';

// Weights of paths in the pieces of time from..to: functions from the root on, the innermost one, thread, and weight.
function paths(data, from, to) {
  const parent = data.up.map((up, node) => node - up);
  const nodePath = (node) => (node <= 0 ? [] : [...nodePath(parent[node]), data.node_functions[node]]);
  let before = 0;
  const leaves = data.leaves.node.map((step, leaf) => {
    const node = (before += step) - 1;
    const path = nodePath(node);
    const said = data.leaves.function[leaf];
    if (said === 1 || node < 0) throw new Error('the page tells nodes and functions apart');
    const innermost = said === 0 ? path[path.length - 1] ?? 0 : said - 2;
    return { path, innermost, thread: data.leaves.thread[leaf], weight: 0 };
  });
  const add = (pairs) => {
    for (let at = 0, leaf = 0; at < pairs.length; at += 2) leaves[leaf += pairs[at]].weight += pairs[at + 1];
  };
  data.slices.own.slice(from, to).forEach(add);
  if (from === 0 && to === data.slices.own.length) add(data.slices.untimed);
  return leaves.filter(({ weight }) => weight > 0);
}

const sum = (weights) => weights.reduce((all, { weight }) => all + weight, 0);

module.exports = { paths, sum };
