// Shared by the tests.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const repository = process.env.PURVIEW_REPOSITORY
  ? `${process.env.PURVIEW_REPOSITORY}/`
  : fileURLToPath(new URL('../../..', import.meta.url));

export function vectors(name) {
  return JSON.parse(readFileSync(`${repository}clients/conformance/${name}`, 'utf8'));
}

export function hex(bytes) {
  return Buffer.from(bytes).toString('hex');
}

export function unhex(digits) {
  return new Uint8Array(Buffer.from(digits, 'hex'));
}

/** Fields that have bytes, in hexadecimal in the vectors. */
const BYTES = new Set(['payload', 'value', 'dots']);

const camel = (name) => name.replace(/_(.)/g, (_, c) => c.toUpperCase());

function convert(value, name) {
  if (BYTES.has(name)) return unhex(value);
  if (Array.isArray(value)) return value.map((v) => convert(v, ''));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [camel(k), convert(v, k)]));
}

/** A vector as this package has the message. */
export function named(vector) {
  return { type: vector.message, ...convert(vector.fields, '') };
}

/** A value of a vector with the names of this package. */
export function renamed(value) {
  return convert(value, '');
}

/** Repeatable chance: integers below `n`. */
export function rng(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    const mixed = Math.imul(state ^ (state >>> 12), 0x297a2d39) >>> 0;
    return ((mixed ^ (mixed >>> 15)) >>> 0) % n;
  };
}

/** Markers at which a decoder branches. */
const MARKS = [
  0x00, 0x7f, 0x80, 0x90, 0x91, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xca, 0xcb, 0xcc,
  0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff,
];

export const corpus = {
  /** A seed with a few changes. */
  mutate(random, seeds) {
    let bytes = [...seeds[random(seeds.length)]];
    for (let n = random(4); n >= 0; n--) {
      const at = random(Math.max(1, bytes.length));
      const change = random(6);
      if (change === 0) bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8));
      else if (change === 1) bytes[at] = MARKS[random(MARKS.length)];
      else if (change === 2) bytes = bytes.slice(0, at);
      else if (change === 3) bytes = [...bytes.slice(0, at), ...seeds[random(seeds.length)].slice(at)];
      else if (change === 4) bytes.splice(at, 0, MARKS[random(MARKS.length)]);
      else bytes.splice(at, 0, 0xdd, random(256), random(256), random(256), random(256));
    }
    return Uint8Array.from(bytes);
  },
};
