// The codec against the vectors of clients/conformance, and against malformed bytes.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

import { decode, DecodeError, encode, PurviewError, readValue, writeValue } from '../dist/index.js';
import { corpus, hex, named, repository, rng, unhex, vectors } from './support.mjs';

const wire = vectors('wire.json');

test('messages to the server have exactly the bytes of the vectors', () => {
  const own = wire.taken.filter((v) => v.from === 'client');
  assert.ok(own.length >= 16);
  for (const v of own) assert.equal(hex(encode(named(v))), v.bytes, v.name);
});

test('messages from the server are read as the vectors say, also those of a later version', () => {
  for (const kind of ['taken', 'later']) {
    const told = wire[kind].filter((v) => v.from === 'server');
    assert.ok(told.length >= 15);
    for (const v of told) assert.deepEqual(decode(unhex(v.bytes)), named(v), `${kind}: ${v.name}`);
  }
});

test('a message of an unknown type from 64 on is passed over', () => {
  assert.equal(decode(unhex('927f9101')), null);
  assert.equal(decode(unhex('927f90')), null);
  assert.throws(() => decode(unhex('923f90')), { fault: 'unknown_type' });
});

test('what a server never sends is a DecodeError of its own kind', () => {
  const cases = [
    ['', 'malformed'],
    ['92', 'malformed'],
    ['7b7d', 'malformed'],
    ['924391', 'malformed'],
    ['92439300', 'malformed'],
    ['924393000000ff', 'malformed'],
    ['9243ddffffffff', 'malformed'],
    ['92436a', 'malformed'],
    ['920601', 'malformed'],
    ['9206910100', 'unknown_type'],
    ['92439200', 'malformed'],
    ['92439100', 'bad_field'],
    ['924393ff0000', 'bad_field'],
    ['924393c00000', 'bad_field'],
    ['924393cf002000000000000000 00'.replace(' ', ''), 'bad_field'],
    ['924394000000810102', 'bad_field'],
    ['92439400000091919191919191919105', 'malformed'],
    ['924693a0a0', 'malformed'],
    ['924692cd0fa6a1ff', 'bad_field'],
  ];
  for (const [bytes, fault] of cases) {
    assert.throws(() => decode(unhex(bytes)), (e) => e instanceof DecodeError && e.fault === fault, bytes);
  }
  assert.throws(() => decode(new Uint8Array(2 ** 20 + 1)), { fault: 'too_big' });
});

test('malformed bytes give typed errors and never anything else', () => {
  const seeds = [...wire.taken, ...wire.later, ...wire.refused].map((v) => unhex(v.bytes));
  for (const target of ['server_frame', 'client_frame']) {
    const folder = `${repository}fuzz/corpus/${target}`;
    for (const name of readdirSync(folder)) seeds.push(new Uint8Array(readFileSync(`${folder}/${name}`)));
  }
  const random = rng(0x5eed);
  let taken = 0;
  const inputs = 30_000;
  for (let n = 0; n < inputs; n++) {
    const bytes = n < seeds.length ? seeds[n] : corpus.mutate(random, seeds);
    try {
      if (decode(bytes)) taken += 1;
    } catch (error) {
      assert.ok(error instanceof DecodeError, `${hex(bytes)}: ${error.stack}`);
    }
    try {
      readValue(bytes);
    } catch (error) {
      assert.ok(error instanceof DecodeError, `${hex(bytes)}: ${error.stack}`);
    }
  }
  assert.ok(taken > inputs / 100, `only ${taken} of ${inputs} were messages`);
});

test('values of properties come back as they were written', () => {
  const values = [
    null, true, false, 0, 127, 128, -1, -32, -33, -129, 65_536, -70_000, 2 ** 40, -(2 ** 40), 2n ** 63n, -(2n ** 63n),
    1.5, '', 'é'.repeat(40), 'x'.repeat(300), new Uint8Array(300), [], [1, [2, [3, []]]], { a: 1, b: { c: null } },
    Array.from({ length: 20 }, (_, i) => i),
  ];
  for (const value of values) assert.deepEqual(readValue(writeValue(value)), value);
  assert.equal(hex(writeValue(3)), '03');
  assert.equal(hex(writeValue(3, 'float')), 'cb4008000000000000');
});

test('what is no value is a typed error', () => {
  for (const bytes of ['', 'c1', '9191919191', 'ddffffffff', 'df7fffffff', 'a2', 'a1ff', '0101', 'c60fffffff']) {
    assert.throws(() => readValue(unhex(bytes)), DecodeError, bytes);
  }
  const wrong = [[[[[[]]]]], 'x'.repeat(1_100), 2n ** 64n, undefined, () => {}, Symbol('x')];
  for (const value of wrong) {
    assert.throws(() => writeValue(value), (e) => e instanceof PurviewError && e.kind === 'value');
  }
});

test('a message that the protocol does not allow is not sent', () => {
  const act = (payload) => ({ type: 'Act', seq: 1, payload, aim: null });
  const wrong = [
    act(new Uint8Array(5_000)),
    { type: 'Ping', nonce: 2 ** 53 },
    { type: 'Ping', nonce: -1 },
    { type: 'Face', seq: 1, facing: 1.5 },
    { type: 'Hello', version: 5, token: 'x'.repeat(70_000), crowd: false },
    { type: 'Walk', seq: 1, correction: 0, atMs: 0, form: { kind: 'path', start: { x: 0, y: 0, z: 0 }, steps: '8', speed: 1 } },
  ];
  for (const message of wrong) assert.throws(() => encode(message), { kind: 'value' });
});
