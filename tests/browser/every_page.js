// What holds of every page: it is drawn, in light and dark, on a phone and on paper, and can be used by everybody.
'use strict';
const assert = require('assert');

// Beside the two of the page, those of the empty one before, and of what tests ask for.
const MOST_LAYOUTS = 4;

module.exports = async (page, data, axe, kind) => {
  const picture = async (name) => {
    if (process.env.EPROF_PICTURES) await page.picture(`${process.env.EPROF_PICTURES}/${kind}-${name}.png`);
  };
  // How many colours a canvas has: of one that nothing was drawn on, one.
  const colors = (id) => page.run(`(() => {
    const canvas = document.getElementById('${id}');
    // A copy: reading a canvas back makes the browser draw it in another way from then on, and say so.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const pixels = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return new Set(pixels).size;
  })()`);
  const looks = [['desktop', 1400, 900, false], ['dark', 1400, 900, true], ['phone', 390, 844, false], ['phone-dark', 390, 844, true]];
  // Laid out once when it is made and once with the pictures in it, and drawn once.
  const { metrics } = await page.send('Performance.getMetrics');
  const layouts = metrics.find(({ name }) => name === 'LayoutCount').value;
  assert.ok(layouts <= MOST_LAYOUTS, `${layouts} layouts until it is seen`);
  assert.strictEqual(await page.run('main.drawn'), 1, 'it is drawn once');
  const backgrounds = new Set();
  for (const [name, width, height, dark] of looks) {
    await page.size(width, height, width < 700);
    await page.media('screen', dark);
    await page.settle();
    backgrounds.add(await page.run('getComputedStyle(document.body).backgroundColor'));
    assert.ok(await colors('flame') > 3, `${name}: the call tree is drawn`);
    if (data.slices.own.length > 1) assert.ok(await colors('chart') > 3, `${name}: power is drawn`);
    assert.ok(await page.run('document.querySelectorAll("#body tr[aria-rowindex]").length') > 0, `${name}: the table has rows`);
    const wide = await page.run('document.documentElement.scrollWidth - innerWidth');
    assert.ok(wide <= 0, `${name}: the page is ${wide} pixels wider than the screen`);
    await picture(name);
    if (axe) await check(page, axe, name);
  }
  assert.strictEqual(backgrounds.size, 2, 'dark is not light');
  await page.size(1400, 900);
  await page.media('screen', false);
  if (axe) {
    // With a function chosen there are more elements.
    await page.run('eprof.choose({ fn: table.rows.find((row) => row.key !== null).key })');
    await check(page, axe, 'with a function chosen');
    await page.run('document.getElementById("help").click()');
    await check(page, axe, 'with the keys shown');
  }
  // Whoever reads in the dark prints on white paper, with what must be known.
  await page.media('print', true);
  await page.settle();
  const [text, back] = await page.run("[getComputedStyle(document.documentElement).getPropertyValue('--warn'), getComputedStyle(document.body).backgroundColor]");
  assert.deepStrictEqual([text, back], ['#8a4b00', 'rgb(255, 255, 255)']);
  assert.ok(await page.run("document.getElementById('notes').hidden || document.getElementById('notes').open"), 'notes are printed');
  await page.media('screen', false);
  const paper = await page.paper();
  assert.ok(paper.subarray(0, 5).toString() === '%PDF-' && paper.length > 5000, 'it is printed');
};

async function check(page, axe, name) {
  await page.run(`if (!window.axe) { ${axe}; }`);
  const found = await page.run(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, impact, nodes }) => [impact, id, nodes.length, nodes[0].html.slice(0, 120), nodes[0].failureSummary]))`);
  const bad = found.filter(([impact]) => ['serious', 'critical'].includes(impact));
  assert.deepStrictEqual(bad, [], `${name}: axe`);
  for (const [impact, id, count] of found) console.log(`  axe, ${name}: ${impact} ${id} (${count})`);
}
