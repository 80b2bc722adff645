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
  await searchWhereItIsScrolled(page, data);
  const drawn = await page.run('(() => { const begin = performance.now(); eprof.computed = null; main.update(eprof); return performance.now() - begin; })()');
  console.log(`  everything anew in ${drawn.toFixed(1)} ms`);
};

// What is found is seen, wherever the table was scrolled to before.
async function searchWhereItIsScrolled(page, data) {
  const names = () => page.run(`(() => {
    const { top, bottom } = document.getElementById('rows').getBoundingClientRect();
    const isSeen = (row) => { const box = row.getBoundingClientRect(); return box.top >= top && box.bottom <= bottom + 1; };
    return [...document.querySelectorAll('#body tr[aria-rowindex]')].filter(isSeen).map((row) => row.querySelector('td.name').textContent);
  })()`);
  const wanted = data.functions.name.filter((name) => name.startsWith('inner::function_0123'));
  assert.strictEqual(wanted.length, 10);
  for (const from of [1, 0.5, 0.01]) {
    await page.run(`(() => { const box = document.getElementById('rows'); box.scrollTop = (box.scrollHeight - box.clientHeight) * ${from}; })()`);
    await page.settle();
    await page.run("document.getElementById('find').focus()");
    await page.type('function_0123');
    assert.deepStrictEqual((await names()).sort(), wanted.sort(), `found from ${from}`);
    await page.key('Escape');
    assert.ok((await names()).length > 5, 'all are there again');
    await page.run("document.getElementById('find').blur()");
  }
  // Fewer rows than before, without another search: of a part that has few functions.
  await page.run("document.getElementById('rows').scrollTop = 1e9");
  await page.settle();
  const last = await page.run(`(() => {
    table.rows = table.rows.slice(0, 40);
    table.show(eprof, true);
    return document.querySelector('#body tr[aria-rowindex="41"]') !== null;
  })()`);
  assert.ok(last, 'the last of fewer rows is drawn');
}
