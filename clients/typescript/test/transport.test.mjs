// The transports over real sockets: whole sessions by TCP and WebSocket, and what goes wrong.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';

import WebSocket, { WebSocketServer } from 'ws';

import { ConnectionError, Player, webSocket } from '../dist/index.js';
import { Framer, tcp } from '../dist/transport/tcp.js';
import { frame, friendly, network } from './fake.mjs';

const retry = { first: 1, most: 2, attempt: 500, patience: 30 };

/** A server in memory behind a real socket: bytes from the socket go in, its messages come out. */
function behind(send, close) {
  const net = network((connection) => friendly(connection));
  const channel = net.transport('real', { opened() {}, message: send, closed: close });
  return { channel, connection: net.connections[0] };
}

function framed(bytes) {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

async function session(transport, address, connection) {
  const ann = await Player.join({ addresses: address, token: 't', scene: 'meadow', transport, retry, updateMs: 0 });
  const acted = ann.act(Uint8Array.of(1, 2, 3));
  for (let n = 0; n < 100 && !connection().received.some((m) => m.name === 'Act'); n++) await new Promise((r) => setTimeout(r, 5));
  connection().send(frame({ ack: 1 }));
  await acted;
  await ann.leave();
  assert.deepEqual(connection().received.map((m) => m.name), ['Hello', 'Join', 'Act', 'Leave']);
}

test('a session by TCP, in pieces of any size', async () => {
  let connection;
  const server = createServer((socket) => {
    const framer = new Framer();
    const made = behind(
      (bytes) => {
        // One byte at a time, then all that is left.
        const all = framed(bytes);
        for (let i = 0; i < 6; i++) socket.write(all.subarray(i, i + 1));
        socket.write(all.subarray(6));
      },
      () => socket.end(),
    );
    connection = made.connection;
    socket.on('data', (bytes) => framer.push(bytes).forEach((message) => made.channel.send(message)));
    socket.on('error', () => {});
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  await session(tcp(), `tcp://127.0.0.1:${server.address().port}`, () => connection);
  server.close();
});

test('a session by a WebSocket of a package', async () => {
  let connection;
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket) => {
    const made = behind((bytes) => socket.send(bytes), () => socket.close());
    connection = made.connection;
    socket.on('message', (bytes) => made.channel.send(new Uint8Array(bytes)));
  });
  await new Promise((resolve) => server.once('listening', resolve));
  await session(webSocket(WebSocket), `ws://127.0.0.1:${server.address().port}/`, () => connection);
  server.close();
});

test('a text message, a wrong address and a closed port are ConnectionErrors', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket) => socket.send('hello'));
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  const cases = [
    [webSocket(WebSocket), `ws://127.0.0.1:${port}/`],
    [webSocket(WebSocket), 'no address at all'],
    [webSocket(WebSocket), 'ws://127.0.0.1:1/'],
    [webSocket(), 'ws://127.0.0.1:1/'],
    [tcp(), 'tcp://127.0.0.1:1'],
    [tcp(), 'tcp://127.0.0.1'],
    [tcp(), 'http://127.0.0.1:80'],
    [tcp(), `tls://127.0.0.1:${port}`],
  ];
  for (const [transport, address] of cases) {
    const joins = Player.join({ addresses: address, token: 't', scene: 'meadow', transport, retry });
    await assert.rejects(joins, ConnectionError, address);
  }
  server.close();
});

test('a stream is split into messages, and a length of no message is refused', () => {
  const whole = Buffer.concat([framed(Uint8Array.of(1)), framed(Uint8Array.of(2, 3)), Buffer.of(0, 0, 0)]);
  for (let at = 0; at <= whole.length; at++) {
    const framer = new Framer();
    const found = [...framer.push(whole.subarray(0, at)), ...framer.push(whole.subarray(at))];
    assert.deepEqual(found.map((m) => [...m]), [[1], [2, 3]]);
  }
  assert.equal(new Framer().push(Buffer.of(0, 0, 0, 0)), null);
  assert.equal(new Framer().push(Buffer.of(0, 0x10, 0, 1)), null);
  assert.deepEqual(new Framer().push(Buffer.of(0, 0x10, 0, 0)), []);
});
