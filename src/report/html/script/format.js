'use strict';

// Numbers as people read them.
const format = {
  prefixes: [['G', 1e9], ['M', 1e6], ['k', 1e3], ['', 1], ['m', 1e-3], ['µ', 1e-6], ['n', 1e-9]],

  // The prefix that leaves one to three digits before the point. Watts and joules in thousands are read as such.
  prefix(size) {
    if (!(size > 0)) return ['', 1];
    return format.prefixes.find(([, factor]) => size >= factor * (factor >= 1e3 ? 10 : 1)) || format.prefixes[6];
  },

  // A number in a unit, to four digits; with the prefix of `like`, where several numbers are to be compared.
  quantity(value, unit, like = value) {
    if (value === 0 && like === 0) return `0 ${unit}`;
    const [prefix, factor] = format.prefix(Math.abs(like));
    return `${format.digits(value / factor, like / factor)} ${prefix}${unit}`;
  },

  digits(value, like = value) {
    const size = Math.abs(like);
    return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
  },

  // A round number on an axis that ends at `like`.
  tick(value, unit, like) {
    const [prefix, factor] = format.prefix(like);
    return `${+(value / factor).toPrecision(6)} ${prefix}${unit}`;
  },

  // A number with its standard error, if that is known.
  withError(value, error, unit) {
    if (!(error > 0)) return format.quantity(value, unit);
    const [prefix, factor] = format.prefix(Math.abs(value));
    return `${format.digits(value / factor)} ± ${format.digits(error / factor, value / factor)} ${prefix}${unit}`;
  },

  percent(share) {
    return Number.isFinite(share) ? `${(share * 100).toFixed(1)} %` : '';
  },

  // A text of so many letters at the most.
  middle(text, most) {
    if (text.length <= most) return text;
    const half = Math.floor((most - 1) / 2);
    return `${text.slice(0, half)}…${text.slice(text.length - half)}`;
  },

  // A module in few columns, as reports call it.
  module(path) {
    return path.startsWith('[kernel.') ? '[kernel]' : path.split('/').pop();
  },

  count(number) {
    return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',');
  },

  // `1 sample`, `2 samples`.
  counted(number, what) {
    return `${format.count(number)} ${what}${Math.round(number) === 1 ? '' : 's'}`;
  },

  // Round numbers from 0 to at most `highest`, about as many as wanted.
  ticks(highest, wanted) {
    if (!(highest > 0)) return [0];
    const rough = highest / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999999);
    return Array.from({ length: Math.floor(highest / step + 1e-9) + 1 }, (_, index) => index * step);
  },
};
