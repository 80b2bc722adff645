// A headless Chromium, spoken to through a pipe by its own protocol: nothing has to be installed for that.
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

class Browser {
  constructor(program) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'eprof-browser-'));
    const options = ['--headless=new', '--remote-debugging-pipe', `--user-data-dir=${this.folder}`, '--no-first-run', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars'];
    // The sandbox cannot be had by root, and in many containers by nobody.
    if (process.getuid() === 0 || process.env.EPROF_NO_SANDBOX) options.push('--no-sandbox');
    this.child = spawn(program, options, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.waiting = new Map();
    this.heard = [];
    this.number = 0;
    let rest = '';
    this.child.stdio[4].setEncoding('utf8');
    this.child.stdio[4].on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      messages.forEach((message) => this.take(JSON.parse(message)));
    });
    this.child.on('exit', () => this.waiting.forEach(({ fail }) => fail(new Error('the browser ended'))));
  }

  take(message) {
    const waiting = this.waiting.get(message.id);
    if (waiting) {
      this.waiting.delete(message.id);
      if (message.error) waiting.fail(new Error(`${waiting.method}: ${message.error.message}`));
      else waiting.done(message.result);
    } else this.heard.forEach((hear) => hear(message));
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.number;
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((done, fail) => this.waiting.set(id, { done, fail, method }));
  }

  async page() {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId);
    for (const domain of ['Page', 'Runtime', 'Log', 'Network', 'Performance']) await page.send(`${domain}.enable`);
    return page;
  }

  async close() {
    const ended = new Promise((done) => this.child.on('exit', done));
    await this.send('Browser.close').catch(() => this.child.kill());
    await ended;
    fs.rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

class Page {
  constructor(browser, sessionId) {
    Object.assign(this, { browser, sessionId, problems: [], requests: [], loaded: null });
    browser.heard.push((message) => {
      if (message.sessionId !== sessionId) return;
      const { method, params } = message;
      if (method === 'Runtime.exceptionThrown') this.problems.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
      if (method === 'Runtime.consoleAPICalled' && ['error', 'warning'].includes(params.type)) this.problems.push(params.args.map((arg) => arg.value ?? arg.description).join(' '));
      if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) this.problems.push(params.entry.text);
      if (method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
      if (method === 'Page.loadEventFired') this.loaded?.();
    });
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  async open(url) {
    const loaded = new Promise((done) => { this.loaded = done; });
    // The same file with another address behind `#` would not be loaded anew.
    await this.send('Page.navigate', { url: 'about:blank' });
    await loaded;
    const again = new Promise((done) => { this.loaded = done; });
    await this.send('Page.navigate', { url });
    await again;
    await this.settle();
  }

  // Two frames: what was to be drawn is drawn.
  settle() {
    return this.run('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))');
  }

  async run(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }

  size(width, height, mobile = false) {
    return this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile });
  }

  media(media, dark) {
    return this.send('Emulation.setEmulatedMedia', { media, features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
  }

  async mouse(type, x, y, buttons = 0) {
    await this.send('Input.dispatchMouseEvent', { type, x, y, button: type === 'mouseMoved' && !buttons ? 'none' : 'left', buttons, clickCount: type === 'mouseMoved' ? 0 : 1 });
  }

  async click(x, y) {
    await this.mouse('mousePressed', x, y, 1);
    await this.mouse('mouseReleased', x, y);
    await this.settle();
  }

  async drag(from, to) {
    await this.mouse('mousePressed', ...from, 1);
    await this.mouse('mouseMoved', (from[0] + to[0]) / 2, to[1], 1);
    await this.mouse('mouseMoved', ...to, 1);
    await this.mouse('mouseReleased', ...to);
    await this.settle();
  }

  async key(key, shift = false) {
    const codes = { Enter: 13, Escape: 27, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, PageDown: 34, End: 35, Home: 36, Tab: 9 };
    const text = key.length === 1 ? key : key === 'Enter' ? '\r' : undefined;
    const event = { key, text, windowsVirtualKeyCode: codes[key] || key.toUpperCase().charCodeAt(0), modifiers: shift ? 8 : 0 };
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event, text: undefined });
    await this.settle();
  }

  async type(text) {
    await this.send('Input.insertText', { text });
    await this.settle();
  }

  // Where an element is.
  box(selector) {
    return this.run(`(() => { const { x, y, width, height } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return { x, y, width, height }; })()`);
  }

  async picture(file, format = 'png') {
    const { data } = await this.send('Page.captureScreenshot', { format });
    fs.writeFileSync(file, Buffer.from(data, 'base64'));
  }

  async paper() {
    const { data } = await this.send('Page.printToPDF', { printBackground: true });
    return Buffer.from(data, 'base64');
  }
}

module.exports = { Browser };
