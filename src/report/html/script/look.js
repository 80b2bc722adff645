// Colours, canvases and elements. Texts of recordings only ever become text, never markup.
const look = {
  mono: '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace',
  sans: '11px system-ui, sans-serif',

  byId(id) {
    return document.getElementById(id);
  },

  element(tag, options = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key === 'class') made.className = value;
      else if (key === 'on') for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? '' : value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  },

  isPrinted: false,
  isDark: false,
  colors: {},
  widths: {},

  // Everything that is asked of the document before it is drawn, at once: what is asked after the first change is laid out
  // anew each time.
  measure() {
    look.isDark = !look.isPrinted && matchMedia('(prefers-color-scheme: dark)').matches;
    const style = getComputedStyle(document.documentElement);
    for (const name of ['dim', 'text', 'mark']) look.colors[name] = style.getPropertyValue(`--${name}`).trim();
    for (const id of ['chart', 'flame']) look.widths[id] = look.byId(id).clientWidth;
  },

  // A canvas as sharp as the screen, which its new size has emptied.
  prepare(canvas, height) {
    const scale = window.devicePixelRatio || 1;
    const width = look.widths[canvas.id];
    canvas.style.height = `${height}px`;
    canvas.width = Math.max(Math.round(width * scale), 1);
    canvas.height = Math.max(Math.round(height * scale), 1);
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    return [context, width];
  },

  hash(text) {
    let hash = 0x811c9dc5;
    for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193) >>> 0;
    return hash;
  },

  // Red, green and blue, from 0 to 255.
  hsl(hue, saturation, lightness) {
    const part = (shift) => {
      const k = (shift + hue / 30) % 12;
      const a = saturation * Math.min(lightness, 1 - lightness);
      return Math.round(255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };
    return [part(0), part(8), part(4)];
  },

  css([red, green, blue]) {
    return `rgb(${red} ${green} ${blue})`;
  },

  // Black or white, whichever is easier to read on a colour: one of them has a contrast above 4.5 on any.
  on(rgb) {
    const linear = (part) => ((part / 255) <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
    return luminance > 0.179 ? '#000' : '#fff';
  },

  between(colors, share) {
    const at = Math.min(Math.max(share, 0), 1) * (colors.length - 1);
    const index = Math.min(Math.floor(at), colors.length - 2);
    return [0, 1, 2].map((part) => Math.round(colors[index][part] + (colors[index + 1][part] - colors[index][part]) * (at - index)));
  },

  kinds: {
    n: ['native', 12], c: ['C++, Rust', 42], i: ['inlined', 182], j: ['run-time compiled', 130], k: ['kernel', 262], g: ['GPU kernel', 322], a: ['no code', null],
  },

  kind(model, fn) {
    const kind = model.data.functions.class[fn];
    return kind === 'l' ? 'k' : kind;
  },

  tinted(hue, shade) {
    const lightness = look.isDark ? 0.30 + shade * 0.08 : 0.74 + shade * 0.10;
    if (hue === null) return look.hsl(210, 0.08, look.isDark ? 0.30 : 0.86);
    return look.hsl(hue, look.isDark ? 0.42 : 0.72, lightness);
  },

  heat() {
    return look.isDark ? [[72, 66, 48], [150, 92, 30], [214, 60, 38]] : [[250, 236, 160], [249, 168, 72], [214, 44, 34]];
  },

  changes() {
    return look.isDark
      ? [[50, 110, 200], [44, 66, 100], [58, 62, 66], [104, 56, 50], [206, 62, 48]]
      : [[62, 124, 214], [178, 206, 240], [232, 234, 236], [246, 192, 180], [222, 72, 54]];
  },

  // The colours of a few things that are told apart, the heaviest first, and of what is none of them.
  series(index) {
    const hues = [212, 28, 150, 340, 268, 56, 186, 8];
    const dark = look.isDark;
    return look.hsl(hues[index % hues.length], dark ? 0.50 : 0.62, dark ? 0.52 : 0.56);
  },

  rest(part) {
    const dark = look.isDark;
    // Others of the program, static, other processes, eprof, lost.
    return look.hsl(212, 0.10, (dark ? [0.62, 0.30, 0.42, 0.52, 0.70] : [0.68, 0.88, 0.80, 0.72, 0.50])[part]);
  },
};
