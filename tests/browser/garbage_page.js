// One sample of five hundred frames that nobody knows, as unwinding makes it of a damaged stack: what else there is stays on
// the first screen.
'use strict';
const assert = require('assert');

module.exports = async (page, data) => {
  const deepest = data.up.reduce((depths, up, node) => [...depths, node === 0 ? 0 : depths[node - up] + 1], []).reduce((a, b) => Math.max(a, b), 0);
  assert.ok(deepest >= 500, `the page has ${deepest} rows of it`);
  for (const view of ['icicle', 'flame']) {
    await page.run(`eprof.choose({ view: '${view}' })`);
    await page.settle();
    const { rows, seen } = await page.run(`(() => {
      const { scrollTop, clientHeight } = document.getElementById('scroll');
      const inSight = flame.places.filter(({ y, w }) => w > 40 && y + flame.row > scrollTop && y < scrollTop + clientHeight);
      return { rows: new Set(flame.places.map(({ y }) => y)).size, seen: inSight.map(({ fn }) => eprof.model.data.functions.name[fn]) };
    })()`);
    assert.ok(rows < 30, `${view}: ${rows} rows`);
    for (const name of ['work::first', 'work::second', 'work::third']) assert.ok(seen.includes(name), `${view}: ${name} is not in sight: ${seen}`);
  }
  await page.run("eprof.choose({ view: 'icicle' })");
};
