// Values of properties: MessagePack of any form, nested at most four deep.

import { DecodeError, ValueError } from './errors.js';
import { MAX_VALUE_BYTES } from './wire/messages.js';

/** A value of a property. An integer beyond 2^53 is a `bigint`; nil stands for no value. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Value[]
  | { [key: string]: Value };

/** The type of a property in the configuration. */
export type ValueType = 'bool' | 'int' | 'float' | 'text' | 'bytes' | 'list' | 'map' | 'any';

const MAX_DEPTH = 4;
const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

class ValueReader {
  private at = 0;
  private readonly view: DataView;

  constructor(private readonly all: Uint8Array) {
    this.view = new DataView(all.buffer, all.byteOffset, all.byteLength);
  }

  whole(): Value {
    const value = this.value(0);
    if (this.at !== this.all.length) throw this.bad('bytes follow the value');
    return value;
  }

  private bad(why: string): DecodeError {
    return new DecodeError('bad_field', `not a value of a property, byte ${this.at}: ${why}`);
  }

  private take(count: number): number {
    const from = this.at;
    if (count > this.all.length - from) throw this.bad('the value is cut off');
    this.at = from + count;
    return from;
  }

  private uint(width: number): number {
    const at = this.take(width);
    if (width === 1) return this.view.getUint8(at);
    return width === 2 ? this.view.getUint16(at) : this.view.getUint32(at);
  }

  private text(length: number): string {
    const from = this.take(length);
    try {
      return decoder.decode(this.all.subarray(from, from + length));
    } catch {
      throw this.bad('a text that is not UTF-8');
    }
  }

  private value(depth: number): Value {
    const marker = this.uint(1);
    if (marker < 0x80) return marker;
    if (marker >= 0xe0) return marker - 0x100;
    if (marker < 0x90) return this.map(marker & 0x0f, depth);
    if (marker < 0xa0) return this.list(marker & 0x0f, depth);
    if (marker < 0xc0) return this.text(marker & 0x1f);
    switch (marker) {
      case 0xc0:
        return null;
      case 0xc2:
      case 0xc3:
        return marker === 0xc3;
      case 0xc4:
      case 0xc5:
      case 0xc6: {
        const length = this.uint(1 << (marker - 0xc4));
        const from = this.take(length);
        return this.all.slice(from, from + length);
      }
      case 0xca:
        return this.view.getFloat32(this.take(4));
      case 0xcb:
        return this.view.getFloat64(this.take(8));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.uint(1 << (marker - 0xcc));
      case 0xcf:
        return plain(this.view.getBigUint64(this.take(8)));
      case 0xd0:
        return this.view.getInt8(this.take(1));
      case 0xd1:
        return this.view.getInt16(this.take(2));
      case 0xd2:
        return this.view.getInt32(this.take(4));
      case 0xd3:
        return plain(this.view.getBigInt64(this.take(8)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.text(this.uint(1 << (marker - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.list(this.uint(marker === 0xdc ? 2 : 4), depth);
      case 0xde:
      case 0xdf:
        return this.map(this.uint(marker === 0xde ? 2 : 4), depth);
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return this.extension(this.uint(1 << (marker - 0xc7)));
      case 0xc1:
        throw this.bad('0xc1 is not MessagePack');
      default:
        return this.extension(1 << (marker - 0xd4));
    }
  }

  /** An extension: its type in the first byte, then its content. */
  private extension(length: number): Value {
    const from = this.take(length + 1);
    return this.all.slice(from, from + length + 1);
  }

  private inside(count: number, width: number, depth: number): void {
    if (depth >= MAX_DEPTH) throw this.bad(`nested deeper than ${MAX_DEPTH}`);
    if (count * width > this.all.length - this.at) throw this.bad('the value is cut off');
  }

  private list(count: number, depth: number): Value[] {
    this.inside(count, 1, depth);
    return Array.from({ length: count }, () => this.value(depth + 1));
  }

  private map(count: number, depth: number): Value {
    this.inside(count, 2, depth);
    const entries: [string, Value][] = [];
    for (let i = 0; i < count; i++) {
      const key = this.value(depth + 1);
      entries.push([typeof key === 'string' ? key : keyText(key), this.value(depth + 1)]);
    }
    return Object.fromEntries(entries);
  }
}

function keyText(key: Value): string {
  return typeof key === 'object' ? JSON.stringify(key, (_, v: unknown) => (typeof v === 'bigint' ? `${v}` : v)) : `${key}`;
}

function plain(n: bigint): number | bigint {
  return n >= Number.MIN_SAFE_INTEGER && n <= Number.MAX_SAFE_INTEGER ? Number(n) : n;
}

/**
 * Reads a value.
 *
 * @throws DecodeError The bytes are no value.
 */
export function readValue(bytes: Uint8Array): Value {
  return new ValueReader(bytes).whole();
}

class ValueWriter {
  readonly out: number[] = [];

  private wide(marker: number, n: bigint, width: number): void {
    this.out.push(marker);
    for (let i = width - 1; i >= 0; i--) this.out.push(Number((n >> BigInt(8 * i)) & 255n));
  }

  private length(n: number, short: number, most: number, markers: [number | null, number, number]): void {
    const [one, two, four] = markers;
    if (n < most) this.out.push(short | n);
    else if (one !== null && n <= 0xff) this.wide(one, BigInt(n), 1);
    else if (n <= 0xffff) this.wide(two, BigInt(n), 2);
    else this.wide(four, BigInt(n), 4);
  }

  private int(n: bigint): void {
    if (n >= -32n && n < 128n) this.out.push(Number(n & 255n));
    else if (n >= 0n) {
      const width = n <= 0xffn ? 0 : n <= 0xffffn ? 1 : n <= 0xffffffffn ? 2 : 3;
      if (n > 0xffff_ffff_ffff_ffffn) throw new ValueError(`${n} is beyond 64 bits`);
      this.wide(0xcc + width, n, 1 << width);
    } else {
      const width = n >= -0x80n ? 0 : n >= -0x8000n ? 1 : n >= -0x8000_0000n ? 2 : 3;
      if (n < -0x8000_0000_0000_0000n) throw new ValueError(`${n} is beyond 64 bits`);
      this.wide(0xd0 + width, n, 1 << width);
    }
  }

  private float(n: number): void {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, n);
    this.wide(0xcb, view.getBigUint64(0), 8);
  }

  write(value: Value, type: ValueType, depth: number): void {
    if (value === null) this.out.push(0xc0);
    else if (typeof value === 'boolean') this.out.push(value ? 0xc3 : 0xc2);
    else if (typeof value === 'bigint') this.int(value);
    else if (typeof value === 'number') {
      if (type !== 'float' && Number.isSafeInteger(value)) this.int(BigInt(value));
      else this.float(value);
    } else if (typeof value === 'string') {
      const bytes = encoder.encode(value);
      this.length(bytes.length, 0xa0, 32, [0xd9, 0xda, 0xdb]);
      this.out.push(...bytes);
    } else if (value instanceof Uint8Array) {
      this.length(value.length, 0, 0, [0xc4, 0xc5, 0xc6]);
      this.out.push(...value);
    } else this.nested(value, depth);
  }

  private nested(value: Value[] | { [key: string]: Value }, depth: number): void {
    if (typeof value !== 'object') throw new ValueError(`a ${typeof value} is no value of a property`);
    if (depth >= MAX_DEPTH) throw new ValueError(`a value is nested deeper than ${MAX_DEPTH}`);
    if (Array.isArray(value)) {
      this.length(value.length, 0x90, 16, [null, 0xdc, 0xdd]);
      for (const one of value) this.write(one, 'any', depth + 1);
      return;
    }
    const entries = Object.entries(value);
    this.length(entries.length, 0x80, 16, [null, 0xde, 0xdf]);
    for (const [key, one] of entries) {
      this.write(key, 'any', depth + 1);
      this.write(one, 'any', depth + 1);
    }
  }
}

/**
 * Writes a value. A property of type `float` gets a float, also where the number is whole.
 *
 * @throws ValueError The value is too long, too deep, or has no MessagePack form.
 */
export function writeValue(value: Value, type: ValueType = 'any'): Uint8Array {
  const writer = new ValueWriter();
  writer.write(value, type, 0);
  if (writer.out.length > MAX_VALUE_BYTES) {
    throw new ValueError(`a value of ${writer.out.length} bytes; at most ${MAX_VALUE_BYTES} are allowed`);
  }
  return Uint8Array.from(writer.out);
}
