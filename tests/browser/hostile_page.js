// Names that would be markup or script: they stay names.
'use strict';
const assert = require('assert');

module.exports = async (page, data) => {
  assert.strictEqual(await page.run('window.pwned'), undefined);
  assert.strictEqual(await page.run('document.querySelectorAll("script").length'), 2);
  assert.strictEqual(await page.run('document.querySelectorAll("img, iframe, svg, object, embed, link").length'), 0);
  const evil = data.functions.name.findIndex((name) => name.includes('<'));
  assert.ok(evil > 0, 'there is such a name');
  const name = data.functions.name[evil];
  await page.run(`eprof.choose({ fn: ${evil}, view: 'sandwich' })`);
  assert.ok(await page.run(`document.getElementById('details').textContent.includes(${JSON.stringify(name)})`));
  await page.run(`eprof.choose({ find: ${JSON.stringify(name)} })`);
  const box = await page.box('#flame');
  await page.mouse('mouseMoved', box.x + 40, box.y + 30);
  await page.settle();
  assert.strictEqual(await page.run('document.querySelectorAll("#tip *:not(b):not(div)").length'), 0);
  assert.strictEqual(await page.run('window.pwned'), undefined);
};
