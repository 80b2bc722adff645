// Where the boxes of call trees stand. A tree is { parent, fn, total }: parents come before their children, node 0 is
// the root.
const layout = {
  // A run of callers without branches is one row if it hides at least so many.
  shortestChain: 3,
  // What may end within such a run, as a share: less is not seen.
  tolerance: 0.005,

  children(tree) {
    if (tree.first) return tree;
    const count = tree.parent.length;
    tree.first = new Int32Array(count).fill(-1);
    tree.next = new Int32Array(count).fill(-1);
    for (let node = count - 1; node > 0; node--) {
      tree.next[node] = tree.first[tree.parent[node]];
      tree.first[tree.parent[node]] = node;
    }
    return tree;
  },

  // The nodes from this one on of which each has nothing but the next.
  chain(tree, node) {
    const chain = [node];
    const whole = tree.total[node] * (1 - layout.tolerance);
    for (;;) {
      let only = -1;
      for (let child = tree.first[node]; child >= 0; child = tree.next[child]) {
        if (tree.total[child] >= whole) only = child;
      }
      if (only < 0) return chain;
      chain.push(node = only);
    }
  },

  // Boxes from `top` on, and the number of rows. A box has its node, those that it stands for (itself, and of a run
  // that is not opened those that follow), its place and width in weight, and its row. Lighter ones than `lightest`
  // are left out.
  boxes(tree, top, opened, lightest) {
    layout.children(tree);
    const boxes = [];
    let rows = 0;
    // Nodes to be placed, and how many from each on are shown one by one, since their run is opened.
    const open = [[top, 0, 0, 1]];
    while (open.length > 0) {
      const [node, x, row, before] = open.pop();
      let singly = before;
      let chain = [node];
      let isOpened = false;
      if (singly === 0) {
        const found = layout.chain(tree, node);
        // The last of them is where it branches or ends: what a reader looks for.
        if (found.length > layout.shortestChain) {
          isOpened = opened.has(node);
          if (isOpened) singly = found.length;
          else chain = found.slice(0, -1);
        }
      }
      boxes.push({ node, chain, x, weight: tree.total[node], row, isOpened });
      rows = Math.max(rows, row + 1);
      const last = chain[chain.length - 1];
      const whole = tree.total[last] * (1 - layout.tolerance);
      let left = x;
      for (let child = tree.first[last]; child >= 0; child = tree.next[child]) {
        const weight = tree.total[child];
        if (weight > 0 && weight >= lightest) {
          const follows = weight >= whole && node !== top;
          open.push([child, left, row + 1, follows ? Math.max(singly - 1, 0) : 0]);
        }
        left += weight;
      }
    }
    return { boxes, rows };
  },

  // The callers of a function: a tree whose root is the function, and whose children call their parents.
  callers(model, total, fn) {
    const tree = layout.merged(fn);
    for (let node = 1; node < model.count; node++) {
      if (model.fn[node] !== fn || !model.outermost[node] || total[node] === 0) continue;
      tree.total[0] += total[node];
      let at = 0;
      for (let above = model.parent[node]; above !== 0; above = model.parent[above]) {
        at = tree.child(at, model.fn[above]);
        tree.total[at] += total[node];
      }
    }
    return tree;
  },

  // What a function calls: a tree whose root is the function.
  callees(model, total, fn) {
    const tree = layout.merged(fn);
    const place = new Int32Array(model.count).fill(-1);
    for (let node = 1; node < model.count; node++) {
      if (total[node] === 0) continue;
      const above = place[model.parent[node]];
      if (above >= 0) place[node] = tree.child(above, model.fn[node]);
      else if (model.fn[node] === fn) place[node] = 0;
      else continue;
      tree.total[place[node]] += total[node];
    }
    return tree;
  },

  // A tree that grows by functions.
  merged(fn) {
    const places = new Map();
    const tree = { parent: [0], fn: [fn], total: [0] };
    tree.child = (node, of) => {
      const key = node * 0x1000000 + of;
      let child = places.get(key);
      if (child === undefined) {
        child = tree.parent.length;
        places.set(key, child);
        tree.parent.push(node);
        tree.fn.push(of);
        tree.total.push(0);
      }
      return child;
    };
    return tree;
  },

  // The direct callers or callees of a function, the heaviest first.
  neighbours(tree) {
    const sums = new Map();
    for (let node = 1; node < tree.parent.length; node++) {
      if (tree.parent[node] === 0) sums.set(tree.fn[node], (sums.get(tree.fn[node]) || 0) + tree.total[node]);
    }
    return [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  },
};
