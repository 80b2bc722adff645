// Two recordings: what changed, with its error.
'use strict';
const assert = require('assert');

module.exports = async (page, data) => {
  const rows = await page.run('table.rows.map(({ key, name, own, change, changeError }) => ({ key, name, own, change, changeError }))');
  const older = new Map(data.older.functions.map(([fn, own, error]) => [fn, { own, error }]));
  let sum = 0;
  for (const { key, name, change, changeError } of rows) {
    const before = key === null ? data.older.gone.find((gone) => gone.name === name) : older.get(key) || { own: 0, error: 0 };
    const now = key === null ? { own: 0, error: 0 } : { own: data.functions.own[key], error: data.functions.error[key] };
    assert.strictEqual(change, now.own - before.own, name);
    assert.ok(Math.abs(changeError - Math.hypot(now.error, before.error)) < 1e-6, name);
    sum += change;
  }
  const whole = data.functions.own.reduce((a, b) => a + b) - data.older.total;
  assert.ok(Math.abs(sum - whole) <= rows.length, `${sum} changed of ${whole}`);
  const sizes = rows.map(({ change }) => Math.abs(change));
  assert.deepStrictEqual(sizes, [...sizes].sort((a, b) => b - a), 'what changed most comes first');
  assert.match(await page.run('document.querySelector("#body td.change").textContent'), /[+−][0-9.]+( ± [0-9.]+)?/);
  assert.strictEqual(await page.run('document.getElementById("color").value'), 'change');
  if (data.weight !== 'joules') {
    const text = await page.run('[document.querySelector("#body td.change").textContent, table.rows[0].change]');
    assert.strictEqual(Number(text[0].replace('−', '-').replaceAll(',', '')), text[1], 'numbers of samples are told as they are');
    return;
  }
  // Of a part of the time nobody can say what it was before.
  await page.run('eprof.choose({ from: 0, to: 1 })');
  assert.strictEqual(await page.run('table.rows.filter((row) => row.change !== null).length'), 0);
};
