// A recording with meters: power over time, a chosen stretch of it, and everything that follows.
'use strict';
const assert = require('assert');
const { agreement, nearness, paths, sum } = require('./sums.js');
const instructions = require('./instructions.js');
const partOfTime = require('./part_of_time.js');

module.exports = async (page, data, url) => {
  const slices = data.slices.own.length;
  const text = (id) => page.run(`document.getElementById('${id}').textContent`);
  const chosen = () => page.run('({ ...eprof.state, opened: [...eprof.state.opened] })');
  const shown = () => page.run('({ all: eprof.sums.all, own: table.rows.reduce((all, row) => all + row.own, 0) })');
  const near = nearness(data);
  const agree = (from, to, what) => agreement(page, data, from, to, what);
  await agree(0, slices, 'the whole');

  // Where code differs in power, that is seen at first sight.
  const { watts, own } = data.functions;
  const powers = watts.filter((power, fn) => power > 0 && own[fn] > data.balance[0][1] * data.unit * 0.05);
  const color = await page.run('eprof.state.color');
  if (powers.length > 1 && Math.max(...powers) > Math.min(...powers) * 1.2) assert.strictEqual(color, 'watts');
  if (!watts.some((power) => power > 0)) assert.strictEqual(color, 'kind');
  assert.strictEqual(await page.run('document.getElementById("color").value'), color);

  near(sum(paths(data, 0, slices)), data.balance[0][1] * data.unit, 'the balance');
  const parts = data.balance.reduce((all, [, joules]) => all + joules, 0);
  const measured = data.slices.measured.flatMap((of) => of.filter((_, index) => data.domains[index].counted)).reduce((a, b) => a + b);
  near(parts * data.unit, measured * data.unit, 'measured');

  // What is stacked is what was measured, however it is divided.
  for (const stack of await page.run('[...document.querySelectorAll("#stack option")].map((option) => option.value)')) {
    const drawn = await page.run(`eprof.choose({ stack: '${stack}' }), timeline.series(eprof).rows.reduce((all, row) => all + row.joules.reduce((a, b) => a + b, 0), 0)`);
    assert.ok(Math.abs(drawn - measured) < 1e-3 * measured, `by ${stack} ${drawn} J are drawn of ${measured}`);
  }
  await page.run("eprof.choose({ stack: 'function' })");

  // Watts beside a function's joules are no power of its code: they say over which time they are a mean.
  const legend = () => page.run("[document.querySelector('#legend li').textContent, ...[...document.querySelectorAll('#legend .item .mean')].map((of) => of.textContent)]");
  const [over, ...means] = await legend();
  assert.strictEqual(over, 'joules and mean power over all of the recording, not while running:');
  assert.ok(means.length > 0 && means.every((of) => /^mean [0-9.]+ [a-zµ]*W$/.test(of)), means.join());
  await page.run('eprof.choose({ from: 0, to: 1 })');
  assert.match((await legend())[0], /^joules and mean power over the chosen [0-9.]+ [a-zµ]*s, /);
  await page.run(`eprof.choose({ from: 0, to: ${slices} })`);

  await partOfTime(page, data);
  await instructions(page, data);

  // A stretch of time by the pointer.
  const chart = await page.box('#chart');
  const at = (share) => [chart.x + 62 + (chart.width - 76) * share, chart.y + 60];
  await page.drag(at(0.3), at(0.6));
  let { from, to } = await chosen();
  assert.ok(from > 0 && to < slices && from < to, `${from} to ${to} of ${slices}`);
  await agree(from, to, 'a stretch');
  assert.match(await text('selection'), / s to .* W; .* of the program/);
  // And back by its ends' keys, with the rest of the time.
  const inside = (await shown()).all;
  await page.run("document.getElementById('from').focus()");
  await page.key('ArrowLeft');
  assert.strictEqual((await chosen()).from, from - 1);
  await page.key('ArrowRight');
  await page.key('Home');
  await page.run("document.getElementById('to').focus()");
  for (let to = (await chosen()).to; to > from; to--) await page.key('ArrowLeft');
  const before = (await shown()).all;
  await page.run(`eprof.choose({ from: ${to}, to: ${slices} })`);
  near(before + inside + (await shown()).all, sum(paths(data, 0, slices)) - sum([...untimed(data)]), 'three stretches');
  await page.run(`eprof.choose({ from: ${from}, to: ${to} })`);

  // The address has it, and a page that is opened there shows the same.
  await page.run("eprof.choose({ find: '.', view: 'flame', sort: 'total' })");
  await page.run('new Promise((done) => setTimeout(done, 300))');
  const hash = await page.run('location.hash');
  const [count, found] = [await text('count'), await text('found')];
  await page.open(`${url}${hash}`);
  assert.deepStrictEqual([await text('count'), await text('found')], [count, found]);
  ({ from, to } = await chosen());
  assert.deepStrictEqual(await page.run('[document.getElementById("view").value, document.getElementById("find").value]'), ['flame', '.']);
  await agree(from, to, 'from its address');
  // Nonsense in the address is nothing.
  await page.open(`${url}#t=5,x&zoom=-1&fn=99999999&view=moon&thread=1e9&open=a,,&find=%5B`);
  assert.match(await text('found'), /as plain text/);
  await page.open(url);

  // Search: by its key, as a regular expression, counted once.
  const innermost = data.functions.own.indexOf(Math.max(...data.functions.own));
  const name = data.functions.name[innermost];
  await page.key('/');
  assert.strictEqual(await page.run('document.activeElement.id'), 'find');
  await page.type(`^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`);
  const matching = data.functions.name.map((other) => other === name);
  const expected = sum(paths(data, 0, slices).filter(({ path, innermost: fn }) => [...path, fn].some((of) => matching[of])));
  const said = await page.run(`[profile.matched(eprof.model, eprof.sums.leaves, eprof.found.matches), document.getElementById('found').textContent]`);
  near(said[0], expected, 'found');
  assert.ok(said[1].startsWith(`matched ${(100 * expected / sum(paths(data, 0, slices))).toFixed(1)} %, `), said[1]);
  await page.key('Escape');
  assert.strictEqual(await text('found'), '');
  await page.key('Escape');
  assert.notStrictEqual(await page.run('document.activeElement.id'), 'find');

  // The call tree by keys.
  await page.run("document.getElementById('flame').focus()");
  for (let step = 0; step < 3; step++) await page.key('ArrowDown');
  assert.match(await text('said'), / [mµ]?J, [0-9.]+ %/);
  await page.key('Enter');
  const { zoom, opened } = await chosen();
  assert.ok(zoom > 0 || opened.length > 0, 'Enter widens a function or opens a row of callers');
  for (let back = 0; back < 4; back++) await page.key('Escape');
  assert.deepStrictEqual((({ zoom, fn, opened }) => [zoom, fn, opened])(await chosen()), [0, null, []]);
  // And by the pointer: the box at hand becomes the widest.
  const flame = await page.box('#flame');
  const deepest = await page.run('(() => { const place = flame.places.find(({ box }) => box.node !== 0 && box.chain.length === 1); return { x: place.x + place.w / 2, y: place.y + 9, node: place.box.node }; })()');
  await page.mouse('mouseMoved', flame.x + deepest.x, flame.y + deepest.y);
  await page.settle();
  assert.match(await text('tip'), / [mµ]?J.* %/);
  await page.click(flame.x + deepest.x, flame.y + deepest.y);
  assert.strictEqual((await chosen()).zoom, deepest.node);
  await page.key('Escape');
  await page.key('Escape');
  assert.deepStrictEqual((({ zoom, fn }) => [zoom, fn])(await chosen()), [0, null]);

  // The table by keys, and what is known of the function there.
  await page.run("document.querySelector('#body tr[tabindex=\"0\"]').focus()");
  await page.key('ArrowDown');
  await page.key('ArrowUp');
  await page.key('Enter');
  const { fn } = await chosen();
  assert.ok(fn > 0 && !await page.run("document.getElementById('details').hidden"));
  const trees = await page.run(`[layout.callers(eprof.model, eprof.sums.nodes.total, ${fn}), layout.callees(eprof.model, eprof.sums.nodes.total, ${fn})].map((tree) => [tree.total[0], tree.total.filter((_, node) => node > 0 && tree.parent[node] === 0).reduce((a, b) => a + b, 0)])`);
  const total = sum(paths(data, 0, slices).filter(({ path }) => path.includes(fn)));
  for (const [whole, children] of trees) {
    near(whole, total, 'the middle of callers and callees');
    assert.ok(children <= whole + 1e-6);
  }
  await page.run("eprof.choose({ view: 'sandwich' })");
  assert.ok(await page.run('flame.places.some(({ part }) => part === "callees")'));
  await page.run("eprof.choose({ view: 'icicle', fn: null })");

  // Wherever a picture grows to, what it begins with is in sight.
  for (const view of ['flame', 'icicle', 'flame']) {
    await page.run(`document.getElementById('scroll').style.maxHeight = '40px', eprof.choose({ view: '${view}' })`);
    const [top, height, row] = await page.run(`(() => {
      const { scrollTop, clientHeight } = document.getElementById('scroll');
      return [scrollTop, clientHeight, flame.places.find(({ box }) => box.node === eprof.state.zoom).y];
    })()`);
    assert.ok(row >= top - 1 && row + 18 <= top + height + 3, `${view}: the root at ${row} is not within ${height} from ${top} on`);
  }
  await page.run("document.getElementById('scroll').style.maxHeight = '', eprof.choose({ view: 'icicle' })");

  // Every order, by every group, has all of it.
  for (const group of ['function', 'module', 'thread', 'cpu']) {
    await page.run(`eprof.choose({ group: '${group}' })`);
    near((await shown()).own, sum(paths(data, 0, slices)) - (group === 'cpu' ? sum(untimed(data)) : 0), `by ${group}`);
  }
  await page.run("eprof.choose({ group: 'function' })");
  const buttons = await page.run('document.querySelectorAll("#head button").length');
  for (let button = 0; button < buttons; button++) {
    await page.run(`document.querySelectorAll("#head button")[${button}].click()`);
    assert.strictEqual(await page.run('document.querySelectorAll("#head [aria-sort]").length'), 1);
    near((await shown()).own, sum(paths(data, 0, slices)), 'in any order');
  }
  // One thread alone, and with the others all.
  if (data.threads.length > 1) {
    let all = 0;
    for (let thread = 0; thread < data.threads.length; thread++) {
      await page.run(`eprof.choose({ thread: ${thread} })`);
      const { own } = await shown();
      near(own, sum(paths(data, 0, slices).filter((path) => path.thread === thread)), data.threads[thread]);
      all += own;
    }
    near(all, sum(paths(data, 0, slices)), 'all threads');
  }
};

function untimed(data) {
  const pairs = data.slices.untimed;
  return Array.from({ length: pairs.length / 2 }, (_, at) => ({ weight: pairs[2 * at + 1] }));
}
