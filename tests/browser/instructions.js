// The instructions of functions: as many joules as the functions took, in the margin of their code.
'use strict';
const assert = require('assert');

module.exports = async (page, data) => {
  const all = data.code;
  if (!all) return;
  const columns = (list, step, column) => list.filter((_, at) => at % step === column);
  for (const of of all.functions) {
    const sum = columns(of.taken, 5, 1).reduce((a, b) => a + b, 0);
    const rows = of.taken.length / 5;
    // Where not all are here, those that took most are.
    if (of.instructions.length / 2 === of.all) assert.ok(Math.abs(sum - of.own) <= rows / 2 + 1, `${of.name}: ${sum} of ${of.own}`);
    assert.ok(sum <= of.own + rows / 2 + 1, `${of.name}: ${sum} of ${of.own}`);
    assert.ok([of.instructions, of.taken].every((list) => list.every(Number.isSafeInteger)), of.name);
  }
  // The heaviest function whose code is here, as a reader sees it.
  const text = (number) => all.texts[number - 1];
  const heaviest = all.functions.find(({ why, taken }) => !why && taken.length > 0);
  if (heaviest) {
    const fn = data.functions.name.findIndex((name, at) => name === heaviest.name && 'nc'.includes(data.functions.class[at]));
    assert.ok(fn > 0, `${heaviest.name} is a function of the page`);
    await page.run(`eprof.choose({ fn: ${fn} })`);
    const seen = await page.run(`(() => {
      const rows = [...document.querySelectorAll('.machine tbody tr:not(.gap):not(.inlined)')];
      return { rows: rows.map((row) => [...row.cells].map((cell) => cell.textContent)), inlined: document.querySelectorAll('.machine .inlined').length };
    })()`);
    assert.strictEqual(seen.rows.length, heaviest.instructions.length / 2);
    columns(heaviest.instructions, 2, 1).forEach((said, at) => {
      if (said > 0) assert.ok(seen.rows[at].some((cell) => cell.endsWith(`: ${text(said)}`)), `${seen.rows[at]}: ${text(said)}`);
    });
    assert.strictEqual(seen.rows.filter(([amount]) => amount !== '').length, heaviest.taken.length / 5);
    // As annotate says it: of what the function took, with all that was inlined into it.
    for (let at = 0; at < heaviest.taken.length; at += 5) {
      const [index, weight] = heaviest.taken.slice(at, at + 2);
      assert.strictEqual(seen.rows[index][0], `${(weight / heaviest.own * 100).toFixed(1)} %`);
    }
    const [wide, room] = await page.run(`(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])(document.querySelector('.instructions'))`);
    assert.ok(wide <= room + 1, `columns of ${wide} pixels in ${room}`);
    assert.strictEqual(seen.inlined > 0, heaviest.inlined.some((said, at) => at % 2 === 1 && said > 0), 'what was inlined is marked');
    // A click on one of those that took most shows where it stands.
    if (heaviest.taken.length > 5) {
      const hottest = Math.max(...columns(heaviest.taken, 5, 1));
      const at = heaviest.taken[5 * columns(heaviest.taken, 5, 1).indexOf(hottest)];
      await page.run(`document.querySelector('[aria-label="instructions that took most"] button').click()`);
      const [top, height, above, below] = await page.run(`(() => {
        const box = (selector) => document.querySelector(selector).getBoundingClientRect();
        return [box('.machine .shown').top, box('.machine .shown').height, box('.instructions').top, box('.instructions').bottom];
      })()`);
      assert.ok(top >= above - 1 && top + height <= below + 1, `the row at ${top} is not within ${above} and ${below}`);
      assert.strictEqual(await page.run(`[...document.querySelectorAll('.machine tbody tr:not(.gap):not(.inlined)')].findIndex((row) => row.classList.contains('shown'))`), at);
    }
    await page.run('eprof.choose({ fn: null }), scrollTo(0, 0)');
  }
  // An inlined function has its own instructions alone.
  const inlined = data.functions.name.findIndex((name, at) => data.functions.class[at] === 'i' && all.functions.some((of) => columns(of.inlined, 2, 1).some((said) => text(said) === name)));
  if (inlined > 0) {
    await page.run(`eprof.choose({ fn: ${inlined} })`);
    const rows = await page.run(`document.querySelectorAll('.machine tbody tr:not(.gap)').length`);
    assert.ok(rows > 0, `instructions of ${data.functions.name[inlined]}, which was inlined`);
    await page.run('eprof.choose({ fn: null })');
  }
};
