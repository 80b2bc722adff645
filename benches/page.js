// How long a page of `eprof view` takes from its navigation to its first paint, to the load event, and until all of it is drawn,
// in a headless Chromium; and what of that is work of the page's thread. Several pages take turns.
//
//     [chrt -r 1] node benches/page.js CHROMIUM RUNS PAGE [PAGE ...]
//
// By `chrt -r 1`, for which one has to be root, other programs of the machine wait meanwhile.
'use strict';
const path = require('path');
const { Browser } = require('../tests/browser/chromium.js');

// The frame that follows the load event is drawn when what it sends to itself arrives.
const watch = `addEventListener('load', () => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { window.seen = performance.now(); };
  port2.postMessage(null);
}))`;
const wait = 'new Promise((done) => setTimeout(done, 300))';
const times = `({
  paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
  load: performance.getEntriesByType('navigation')[0].loadEventStart,
  drawn: window.seen,
})`;

async function once(browser, file) {
  const page = await browser.page();
  await page.send('Page.bringToFront');
  await page.send('Performance.disable');
  await page.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source: watch });
  await page.size(1400, 900);
  await page.media('screen', false);
  await page.open(`file://${path.resolve(file)}`);
  const { metrics } = await page.send('Performance.getMetrics');
  await page.run(wait);
  const found = await page.run(times);
  const cpu = (name) => metrics.find((metric) => metric.name === name).value * 1e3;
  const { targetInfo } = await page.send('Target.getTargetInfo');
  await browser.send('Target.closeTarget', { targetId: targetInfo.targetId });
  return { ...found, 'CPU time': cpu('TaskDuration'), 'of its script': cpu('ScriptDuration') };
}

async function main() {
  const [program, runs, ...files] = process.argv.slice(2);
  const browser = new Browser(program);
  const found = files.map(() => []);
  try {
    // The first of each is not counted: its file is read, and the browser has not drawn yet.
    for (let run = 0; run <= Number(runs); run++) {
      for (const [at, file] of files.entries()) {
        const times = await once(browser, file);
        if (run > 0) found[at].push(times);
      }
    }
  } finally {
    await browser.close();
  }
  for (const [at, file] of files.entries()) {
    console.log(`${file}, ms: best, median, worst of ${runs}`);
    for (const key of Object.keys(found[at][0])) {
      const sorted = found[at].map((times) => times[key]).sort((a, b) => a - b);
      const [best, median, worst] = [0, sorted.length >> 1, sorted.length - 1].map((place) => sorted[place].toFixed(0));
      console.log(`  ${key.padEnd(14)} ${best}, ${median}, ${worst}`);
    }
  }
}

main().catch((error) => {
  console.error(error.stack);
  process.exitCode = 1;
});
