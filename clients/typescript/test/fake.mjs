// A server in memory: a test says what it answers.

import { readFileSync } from 'node:fs';

import { repository } from './support.mjs';

/** MessagePack of the envelope. */
export function pack(value) {
  const out = [];
  write(value, out);
  return Uint8Array.from(out);
}

function write(value, out) {
  if (value === null) out.push(0xc0);
  else if (typeof value === 'boolean') out.push(value ? 0xc3 : 0xc2);
  else if (typeof value === 'string') {
    const bytes = Buffer.from(value);
    out.push(0xda, bytes.length >> 8, bytes.length & 255, ...bytes);
  } else if (value instanceof Uint8Array) out.push(0xc5, value.length >> 8, value.length & 255, ...value);
  else if (Array.isArray(value)) {
    out.push(0xdc, value.length >> 8, value.length & 255);
    value.forEach((one) => write(one, out));
  } else if (value >= 0 && value < 128) out.push(value);
  else {
    const view = Buffer.alloc(9);
    view[0] = 0xd3;
    view.writeBigInt64BE(BigInt(value), 1);
    out.push(...view);
  }
}

/** A message from the server. */
export function message(type, fields) {
  return Uint8Array.from([0x92, type, ...pack(fields)]);
}

const numbers = Object.fromEntries(
  [...readFileSync(`${repository}proto/client/messages.toml`, 'utf8').matchAll(/number = (\d+)\nname = "(\w+)"/g)].map(
    ([, number, name]) => [Number(number), name],
  ),
);

/** A message from the client: its name and fields. */
export function read(bytes) {
  let at = 0;
  const view = Buffer.from(bytes);
  const take = (n) => ((at += n), at - n);
  const value = () => {
    const m = view[take(1)];
    if (m < 0x80) return m;
    if (m >= 0xe0) return m - 256;
    if (m === 0xc0) return null;
    if (m === 0xc2 || m === 0xc3) return m === 0xc3;
    if ((m & 0xf0) === 0x90) return Array.from({ length: m & 15 }, value);
    if (m === 0xdc) return Array.from({ length: view.readUInt16BE(take(2)) }, value);
    const text = (n) => view.toString('utf8', take(n), at);
    if ((m & 0xe0) === 0xa0) return text(m & 31);
    if (m === 0xd9) return text(view[take(1)]);
    if (m === 0xc4) return new Uint8Array(view.subarray(take(view[take(1)]), at));
    if (m >= 0xcc && m <= 0xce) return view.readUIntBE(take(1 << (m - 0xcc)), 1 << (m - 0xcc));
    if (m === 0xcf) return Number(view.readBigUInt64BE(take(8)));
    if (m >= 0xd0 && m <= 0xd2) return view.readIntBE(take(1 << (m - 0xd0)), 1 << (m - 0xd0));
    throw new Error(`marker ${m}`);
  };
  const [type, fields] = value();
  return { name: numbers[type], fields };
}

export const welcome = (rate = 50) => message(64, [5, 7, 100, 1_000, rate, 4_096, 30_000]);

const MOVE_RULES = [100, 100, 2_000, 500, 300, 1_000, null, []];
const at = (x, z) => [x, 0, z];
export const standing = (x, z) => [0, null, [1, at(x, z), 0, 0, null]];

export function joined(of = {}) {
  const { id = 9, scene = 'meadow', plane = 0, x = 1_000, z = 1_000, judged = true, ack = 0, ticket = 'ticket-1' } = of;
  const own = judged ? [of.correction ?? 0, standing(x, z), 500, 0, []] : null;
  const movement = judged ? MOVE_RULES : null;
  const rules = [[2], 7, 7, [400, 400], 0, null, 60, 0, [1, 1, 1], [10_000, 10_000], movement, null];
  return message(65, [id, scene, plane, at(x, z), 0, 5, rules, own, ack, ticket && [ticket, 10_000]]);
}

let tick = 100;

export function frame(of = {}) {
  tick += 1;
  const list = (name) => of[name] ?? [];
  return message(66, [
    of.tick ?? tick, of.ack ?? 0, 1, of.resync ?? false, list('enters'), list('leaves'), list('moves'),
    list('trajectories'), list('turns'), list('acts'), list('properties'), list('messages'), list('refused'),
    of.own ?? null, of.crowd ?? null,
  ]);
}

export const refused = (code, seq, detail = '') => message(68, [code, seq, detail]);

export const closing = (code, detail = '') => message(70, [code, detail]);

/** A transport whose connections are handed to `serve(connection, address)`. */
export function network(serve) {
  const connections = [];
  const transport = (address, events) => {
    const connection = {
      address,
      received: [],
      isOpen: true,
      /** Answers of the test by the name of the client's message. */
      answers: {},
      send: (bytes) => queueMicrotask(() => connection.isOpen && events.message(bytes)),
      drop: (code = null) => {
        if (!connection.isOpen) return;
        connection.isOpen = false;
        queueMicrotask(() => events.closed(code, 'dropped by the test'));
      },
    };
    connections.push(connection);
    serve(connection, address);
    queueMicrotask(() => connection.isOpen && events.opened());
    return {
      send: (bytes) => {
        if (!connection.isOpen) return;
        const said = read(bytes);
        connection.received.push(said);
        connection.answers[said.name]?.(said.fields);
      },
      close: () => connection.drop(),
    };
  };
  return { transport, connections };
}

/** A server that lets everybody in. */
export function friendly(connection, place = {}) {
  connection.answers = {
    Hello: () => connection.send(welcome()),
    Join: () => connection.send(joined(place)),
    Resume: ([, ack]) => connection.send(joined({ ...place, ack })),
    Leave: () => (connection.send(message(69, [1])), connection.send(closing(1000))),
    ...connection.answers,
  };
}

export const turn = () => new Promise((resolve) => setTimeout(resolve, 5));
