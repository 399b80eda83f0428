// Integer arithmetic as the server has it: division rounds towards zero, roots round down, and
// products of any size are exact. Numbers beyond 2^53 take the slow way by BigInt.

export const U32_MAX = 0xffffffff;
const I32_MIN = -0x80000000;
const I32_MAX = 0x7fffffff;

/** `a * b / c`, rounded towards zero. */
export function mulDiv(a: number, b: number, c: number): number {
  const product = a * b;
  if (Number.isSafeInteger(product)) return Math.trunc(product / c) + 0;
  return Number((BigInt(a) * BigInt(b)) / BigInt(c));
}

/** A number within 32 bits. */
export function i32(n: number): number {
  return n < I32_MIN ? I32_MIN : n > I32_MAX ? I32_MAX : n;
}

/** The square root of a sum of squares times `scale`, rounded down. */
export function rootOf(a: number, b: number, scale: number): number {
  const n = (a * a + b * b) * scale;
  if (n <= Number.MAX_SAFE_INTEGER) {
    let root = Math.floor(Math.sqrt(n));
    while (root * root > n) root--;
    while ((root + 1) * (root + 1) <= n) root++;
    return root;
  }
  return Number(bigRoot((BigInt(a) * BigInt(a) + BigInt(b) * BigInt(b)) * BigInt(scale)));
}

/** The length of a vector, rounded up. */
export function ceilLength(a: number, b: number): number {
  const root = rootOf(a, b, 1);
  const whole = a * a + b * b;
  if (whole <= Number.MAX_SAFE_INTEGER) return root * root < whole ? root + 1 : root;
  const short = BigInt(root) * BigInt(root) < BigInt(a) * BigInt(a) + BigInt(b) * BigInt(b);
  return short ? root + 1 : root;
}

function bigRoot(n: bigint): bigint {
  let root = BigInt(Math.floor(Math.sqrt(Number(n))));
  while (root * root > n) root--;
  while ((root + 1n) * (root + 1n) <= n) root++;
  return root;
}

/** The square of the distance on the ground and in height. */
export function dist2(a: Position, b: Position): number {
  return (a.x - b.x) ** 2 + (a.y - b.y) ** 2 + (a.z - b.z) ** 2;
}

/** Centimetres: `x` to the east, `y` up, `z` to the south. */
export interface Position {
  x: number;
  y: number;
  z: number;
}
