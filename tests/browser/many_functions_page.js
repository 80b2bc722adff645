// Ten thousand functions: few rows are elements, and all can be reached.
'use strict';
const assert = require('assert');

module.exports = async (page, data) => {
  const rows = await page.run('table.rows.length');
  assert.ok(rows >= 10000 && rows <= data.functions.name.length, `${rows} rows`);
  const elements = () => page.run('document.querySelectorAll("#body tr[aria-rowindex]").length');
  assert.ok(await elements() < 100);
  assert.strictEqual(await page.run('document.getElementById("grid").getAttribute("aria-rowcount")'), String(rows + 1));
  const timed = await page.run(`(async () => {
    const box = document.getElementById('rows');
    let longest = 0;
    for (let step = 0; step <= 100; step++) {
      const begin = performance.now();
      box.scrollTop = (box.scrollHeight - box.clientHeight) * step / 100;
      table.show(eprof);
      longest = Math.max(longest, performance.now() - begin);
      await new Promise((done) => requestAnimationFrame(done));
      const [first, last] = ['tr[aria-rowindex]', 'tr[aria-rowindex]:nth-last-child(2)'].map((row) => document.querySelector('#body ' + row).getBoundingClientRect());
      const { top, bottom } = box.getBoundingClientRect();
      if (first.top > top + 30 || last.bottom < bottom - 30) throw new Error('a gap at ' + step);
    }
    return longest;
  })()`);
  console.log(`  ${rows} rows; the slowest of 100 steps of scrolling took ${timed.toFixed(1)} ms`);
  assert.ok(await elements() < 100);
  await page.run("document.getElementById('rows').scrollTop = 0");
  await page.settle();
  await page.run("document.querySelector('#body tr[tabindex=\"0\"]').focus()");
  await page.key('End');
  assert.strictEqual(await page.run('document.activeElement.getAttribute("aria-rowindex")'), String(rows + 1));
  const drawn = await page.run('(() => { const begin = performance.now(); eprof.computed = null; main.update(eprof); return performance.now() - begin; })()');
  console.log(`  everything anew in ${drawn.toFixed(1)} ms`);
};
