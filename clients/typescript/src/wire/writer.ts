// Writes messages to the server, each value in its shortest form.

import { ValueError } from '../errors.js';
import { MAX_CLIENT_FRAME } from './messages.js';

const utf8 = new TextEncoder();

export class Writer {
  private bytesOut = new Uint8Array(64);
  private at = 0;

  /** The message. */
  done(): Uint8Array {
    if (this.at > MAX_CLIENT_FRAME) {
      throw new ValueError(`a message of ${this.at} bytes; at most ${MAX_CLIENT_FRAME} are allowed`);
    }
    return this.bytesOut.slice(0, this.at);
  }

  private room(count: number): void {
    if (this.at + count <= this.bytesOut.length) return;
    const more = new Uint8Array(2 * (this.at + count));
    more.set(this.bytesOut);
    this.bytesOut = more;
  }

  private put(...bytes: number[]): void {
    this.room(bytes.length);
    for (const byte of bytes) this.bytesOut[this.at++] = byte;
  }

  private append(bytes: Uint8Array): void {
    this.room(bytes.length);
    this.bytesOut.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** A marker, then a number in so many bytes. */
  private wide(marker: number, n: number, width: number): void {
    this.put(marker);
    const high = Math.floor(n / 2 ** 32);
    if (width === 8) this.put(high >>> 24, (high >>> 16) & 255, (high >>> 8) & 255, high & 255);
    for (let shift = Math.min(width, 4) * 8 - 8; shift >= 0; shift -= 8) this.put((n >>> shift) & 255);
  }

  message(type: number, fields: number): void {
    this.put(0x92, type);
    this.array(fields);
  }

  array(count: number): void {
    if (count < 16) this.put(0x90 | count);
    else this.wide(0xdc, count, 2);
  }

  list<T>(all: readonly T[], one: (v: T) => void): void {
    this.array(all.length);
    all.forEach(one);
  }

  nil(): void {
    this.put(0xc0);
  }

  bool(on: boolean): void {
    this.put(on ? 0xc3 : 0xc2);
  }

  private int(n: number, low: number, high: number): void {
    if (!Number.isInteger(n) || n < low || n > high) {
      throw new ValueError(`${n} is no integer of ${low} to ${high}`);
    }
    if (n >= -32 && n < 0x80) this.put(n & 255);
    else if (n >= 0 && n <= 0xff) this.wide(0xcc, n, 1);
    else if (n >= 0 && n <= 0xffff) this.wide(0xcd, n, 2);
    else if (n >= 0 && n <= 0xffffffff) this.wide(0xce, n, 4);
    else if (n >= 0) this.wide(0xcf, n, 8);
    else if (n >= -0x80) this.wide(0xd0, n, 1);
    else if (n >= -0x8000) this.wide(0xd1, n, 2);
    else this.wide(0xd2, n, 4);
  }

  u8(n: number): void {
    this.int(n, 0, 0xff);
  }

  sum7(n: number): void {
    this.int(n, 0, 7);
  }

  u16(n: number): void {
    this.int(n, 0, 0xffff);
  }

  u32(n: number): void {
    this.int(n, 0, 0xffffffff);
  }

  u64(n: number): void {
    this.int(n, 0, Number.MAX_SAFE_INTEGER);
  }

  i32(n: number): void {
    this.int(n, -0x80000000, 0x7fffffff);
  }

  text(text: string): void {
    const bytes = utf8.encode(text);
    if (bytes.length < 32) this.put(0xa0 | bytes.length);
    else if (bytes.length <= 0xff) this.wide(0xd9, bytes.length, 1);
    else this.wide(0xda, Math.min(bytes.length, 0xffff), 2);
    this.append(bytes);
  }

  steps(steps: string): void {
    if (!/^[0-7]{0,64}$/.test(steps)) {
      throw new ValueError(`steps are at most 64 digits 0 to 7, not ${JSON.stringify(steps)}`);
    }
    this.text(steps);
  }

  bytes(bytes: Uint8Array): void {
    if (bytes.length <= 0xff) this.wide(0xc4, bytes.length, 1);
    else this.wide(0xc5, Math.min(bytes.length, 0xffff), 2);
    this.append(bytes);
  }
}
