// Opens pages of `eprof view` in a browser and checks what is drawn, said and added up.
//
//     node main.js CHROMIUM AXE|- KIND PAGE [KIND PAGE ...]
//
// AXE is axe-core's axe.min.js, a checker of accessibility. Pictures are kept in the folder that EPROF_PICTURES names.
'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { Browser } = require('./chromium.js');
const every = require('./every_page.js');
const kinds = {
  program: require('./program_page.js'),
  difference: require('./difference_page.js'),
  hostile: require('./hostile_page.js'),
  inlined: require('./inlined_page.js'),
  garbage: require('./garbage_page.js'),
  many: require('./many_functions_page.js'),
  bare: async () => {},
};

async function main() {
  const [program, axe, ...pages] = process.argv.slice(2);
  const browser = new Browser(program);
  try {
    for (let at = 0; at < pages.length; at += 2) {
      const [kind, file] = pages.slice(at, at + 2);
      const page = await browser.page();
      await page.size(1400, 900);
      await page.media('screen', false);
      const url = `file://${path.resolve(file)}`;
      await page.open(url);
      const data = JSON.parse(fs.readFileSync(file, 'utf8').split('id="data">')[1].split('</script>')[0]);
      await kinds[kind](page, data, url);
      await page.open(url);
      await every(page, data, axe === '-' ? null : fs.readFileSync(axe, 'utf8'), kind);
      assert.deepStrictEqual(page.problems, [], `${file}: the console has errors`);
      assert.deepStrictEqual(page.requests.filter((request) => request.split('#')[0] !== url && request !== 'about:blank'), [], `${file} loads something`);
      console.log(`${kind}: ok`);
    }
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error.stack);
  process.exitCode = 1;
});
