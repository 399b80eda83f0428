// A player against a server in memory: joining, numbers of inputs, refusals, resuming, errors.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  BehindError, ClosedError, CLOSES, ConnectionError, DecodeError, ERRORS, LostError, Player, ProtocolError, PurviewError,
  RefusedError, ValueError, ViewError,
} from '../dist/index.js';
import { closing, frame, friendly, joined, message, network, refused, turn } from './fake.mjs';

const retry = { first: 1, most: 4, attempt: 200, patience: 60 };

const options = (net, more = {}) => ({
  addresses: ['a', 'b'], token: 'dev:ann', scene: 'meadow', transport: net.transport, retry, updateMs: 0, ...more,
});

const inputs = (connection) => connection.received.filter(({ name }) => ['Face', 'Act', 'Set', 'Walk', 'Move'].includes(name));

async function player(place = {}, more = {}) {
  const net = network((connection) => friendly(connection, place));
  const ann = await Player.join(options(net, more));
  await turn();
  return { ann, net, line: () => net.connections.at(-1) };
}

test('a player joins at the first address that lets it in, with a token for each attempt', async () => {
  let tokens = 0;
  const net = network((c, address) => (address === 'a' ? c.drop() : friendly(c)));
  const token = async () => `token-${++tokens}`;
  const ann = await Player.join(options(net, { token, properties: { appearance: 'red' }, crowd: true, sight: 3, viewCap: 20 }));
  assert.deepEqual(net.connections.map((c) => c.address), ['a', 'b']);
  const [hello, join] = net.connections[1].received;
  assert.deepEqual(hello, { name: 'Hello', fields: [5, 'token-1', true] });
  const { fields } = join;
  assert.deepEqual(fields.slice(0, 4), ['meadow', null, null, 3]);
  assert.deepEqual(fields[4], [[0, Uint8Array.of(0xa3, 0x72, 0x65, 0x64)]]);
  assert.equal(fields[5], 20);
  assert.deepEqual([ann.id, ann.place.scene, ann.position()], [9, 'meadow', { x: 1_000, y: 0, z: 1_000 }]);
  ann.close();
});

test('the lines of a scene are asked for without a join', async () => {
  const net = network((c) => {
    friendly(c);
    c.answers.AskLines = ([scene]) => c.send(scene === 'city' ? lines : refused(7, null, 'no such scene'));
  });
  const lines = message(73, ['city', 4, 50, [[0, 50, false], [1, 3, true]]]);
  const want = [{ plane: 0, players: 50, open: false }, { plane: 1, players: 3, open: true }];
  const answer = await Player.lines(options(net, { scene: 'city' }));
  assert.deepEqual(answer, { type: 'Lines', scene: 'city', total: 4, capacity: 50, lines: want });
  assert.deepEqual(net.connections.map((c) => c.isOpen), [false]);
  await assert.rejects(Player.lines(options(net)), (e) => e instanceof RefusedError && e.detail === 'no such scene');
});

test('no address answers: the player gives up with a ConnectionError', async () => {
  const net = network((c) => c.drop());
  await assert.rejects(Player.join(options(net, { retry: { ...retry, patience: 500 } })), ConnectionError);
  assert.ok(net.connections.length > 4, 'every address is tried again after a pause');
  await assert.rejects(Player.join(options(network(() => {}), { retry: { ...retry, attempt: 20 } })), ConnectionError);
  await assert.rejects(Player.join(options(net, { addresses: [] })), ValueError);
  const none = { token: () => Promise.reject(new Error('offline')) };
  await assert.rejects(Player.join(options(network(friendly), none)), (e) => e instanceof PurviewError && e.kind === 'token');
});

test('every error code refuses a join by its name, and busy is tried again', async () => {
  for (const [code, name] of Object.entries(ERRORS)) {
    const net = network((c) => {
      friendly(c);
      c.answers.Join = () => c.send(net.connections.length < 3 ? refused(Number(code), null, 'why') : joined());
    });
    const joins = Player.join(options(net));
    if (name === 'busy' || name === 'taken') (await joins).close();
    else await assert.rejects(joins, (e) => e instanceof RefusedError && e.reason === name && e.detail === 'why');
  }
  const net = network((c) => (c.answers = { Hello: () => c.send(refused(3, null, 'no token')) }));
  await assert.rejects(Player.join(options(net)), { kind: 'refused', reason: 'bad_field' });
});

test('every close code is an error of its name', async () => {
  for (const [code, name] of Object.entries(CLOSES)) {
    const net = network((c) => (c.answers = { Hello: () => c.send(closing(Number(code), 'why')) }));
    await assert.rejects(Player.join(options(net)), (e) => e instanceof ClosedError && e.reason === name, name);
  }
  const net = network((c) => (c.answers = { Hello: () => c.drop(4002) }));
  await assert.rejects(Player.join(options(net)), { code: 4002, reason: 'token' });
});

test('inputs are numbered, and resolve when a frame acknowledges them', async () => {
  const { ann, line } = await player();
  const [face, act] = [ann.face(-1), ann.act(Uint8Array.of(1), 7)];
  assert.deepEqual(inputs(line()).map((i) => i.fields[0]), [1, 2]);
  assert.deepEqual(inputs(line())[0].fields, [1, 65_535]);
  assert.equal(ann.waiting, 2);
  line().send(frame({ ack: 2, refused: [[2, 33]] }));
  await face;
  await assert.rejects(act, (e) => e instanceof RefusedError && e.reason === 'too_often');
  assert.equal(ann.waiting, 0);
  ann.close();
});

test('a player that was still there from an earlier login goes on with its numbers', async () => {
  const { ann, line } = await player({ ack: 7 });
  const face = ann.face(1);
  assert.deepEqual(inputs(line()).map((i) => i.fields[0]), [8]);
  line().send(frame({ ack: 8 }));
  await face;
  ann.close();
});

test('behind a refused input the others are numbered and sent again', async () => {
  const { ann, line } = await player();
  const results = [0, 1, 2, 3].map((n) => ann.act(Uint8Array.of(n)).then(() => 'applied', (e) => e.reason));
  const events = [];
  ann.on('refused', (error) => events.push(error.reason));
  // The session refuses 2, and so 3 and 4, while 5 is on its way.
  line().send(refused(10, 2, 'not now'));
  line().send(refused(5, 3));
  await turn();
  results.push(ann.act(Uint8Array.of(4)).then(() => 'applied'));
  line().send(refused(5, 4));
  await turn();
  const sent = inputs(line()).map((i) => [i.fields[0], i.fields[1][0]]);
  assert.deepEqual(sent, [[1, 0], [2, 1], [3, 2], [4, 3], [2, 2], [3, 3], [4, 4]]);
  line().send(frame({ ack: 4 }));
  assert.deepEqual(await Promise.all(results), ['applied', 'busy', 'applied', 'applied', 'applied']);
  assert.deepEqual(events, ['busy']);
  // An answer to a copy that the server has already changes nothing.
  line().send(refused(5, 4));
  await turn();
  ann.face(1);
  assert.equal(inputs(line()).at(-1).fields[0], 5);
  ann.close();
});

test('after a broken connection the player resumes, and sends what is not acknowledged again', async () => {
  const { ann, net, line } = await player();
  const events = [];
  ann.on('reconnecting', (why) => events.push(why.kind));
  ann.on('joined', (_, arrival) => events.push(arrival));
  const results = [0, 1, 2].map((n) => ann.act(Uint8Array.of(n)));
  line().send(frame({ ack: 1 }));
  line().send(message(71, [['ticket-2', 10_000]]));
  await turn();
  line().drop();
  const later = ann.act(Uint8Array.of(3));
  await ann.once('joined');
  assert.equal(net.connections.length, 2);
  assert.equal(line().address, 'b', 'another gateway is tried first');
  assert.deepEqual(line().received.map((m) => m.name).slice(0, 2), ['Hello', 'Resume']);
  assert.deepEqual(line().received[1].fields, ['ticket-2', 1]);
  assert.deepEqual(inputs(line()).map((i) => [i.fields[0], i.fields[1][0]]), [[2, 1], [3, 2], [4, 3]]);
  line().send(frame({ resync: true, ack: 4 }));
  await Promise.all([...results, later]);
  assert.deepEqual(events, ['connection', 'resumed']);
  ann.close();
});

test('inputs behind a resume go out at half of the rate', async () => {
  let time = 0;
  const { ann, line } = await player({}, { now: () => time });
  line().drop();
  for (let n = 0; n < 100; n++) ann.act(Uint8Array.of(n));
  await ann.once('joined');
  assert.equal(inputs(line()).length, 25);
  for (let n = 0; n < 20; n++) {
    time += 50;
    ann.update();
  }
  assert.equal(inputs(line()).length, 50);
  ann.close();
});

test('a player that is gone joins anew, or is over', async () => {
  const serve = (connection) => {
    friendly(connection);
    connection.answers.Resume = () => connection.send(refused(25, null, 'gone'));
  };
  const net = network(serve);
  const ann = await Player.join(options(net));
  await turn();
  net.connections[0].send(frame({ ack: 0, enters: [[20, 0, 1, 0, 1, 0, [], null]], tick: 900_000 }));
  await turn();
  assert.equal(ann.view.size, 1);
  const left = [];
  ann.view.on('leave', (entity, why) => left.push([entity.id, why]));
  const lost = ann.act(Uint8Array.of(1));
  net.connections[0].drop();
  await assert.rejects(lost, LostError);
  await ann.once('joined');
  assert.deepEqual([left, ann.view.size], [[[20, 'world']], 0]);
  ann.face(3);
  assert.equal(inputs(net.connections[1]).at(-1).fields[0], 1, 'numbers begin anew');
  net.connections[1].send(frame({ ack: 1, tick: 5 }));
  await turn();
  assert.equal(ann.view.tick, 5, 'and so may ticks');
  ann.close();

  const strict = network(serve);
  const eve = await Player.join(options(strict, { rejoin: false }));
  await turn();
  strict.connections[0].drop();
  const [why] = await eve.once('closed');
  assert.ok(why instanceof RefusedError && why.reason === 'gone');
  await assert.rejects(eve.face(1), RefusedError);
});

test('a close that is final ends the player, and what waits is lost', async () => {
  for (const code of [4005, 4009, 4011, 4012]) {
    const { ann, net, line } = await player();
    const waiting = ann.face(1);
    line().send(closing(code));
    const [why] = await ann.once('closed');
    assert.ok(why instanceof ClosedError && why.code === code);
    await assert.rejects(waiting, LostError);
    assert.deepEqual(net.connections.map((c) => c.isOpen), [false], 'the connection is ended, and no other is made');
  }
});

test('a server that breaks the protocol ends the player with a typed error', async () => {
  const cases = [
    [Uint8Array.of(0x92, 66, 0x91), DecodeError],
    [frame({ leaves: [77] }), ViewError],
    [frame({ tick: 1, enters: [[9, 0, 0, 0, 0, 0, [[1, 1, Uint8Array.of(0xc1)]], null]] }), DecodeError],
  ];
  for (const [bytes, kind] of cases) {
    const { ann, line } = await player();
    const closed = ann.once('closed');
    line().send(bytes);
    const [why] = await closed;
    assert.ok(why instanceof kind, String(why));
  }
  const flood = network((c) => {
    c.answers = { Hello: () => { for (let n = 0; n < 1_100; n++) c.send(frame()); } };
  });
  await assert.rejects(Player.join(options(flood)), ProtocolError);
});

test('too many inputs that wait are refused by the client', async () => {
  const { ann } = await player();
  for (let n = 0; n < 240; n++) ann.face(n);
  await assert.rejects(ann.face(1), BehindError);
  ann.close();
});

test('what cannot be sent is a ValueError at once', async () => {
  const { ann } = await player();
  await assert.rejects(ann.act(new Uint8Array(1_025)), ValueError);
  await assert.rejects(ann.set('nothing', 1), ValueError);
  await assert.rejects(ann.set('1', 'x'.repeat(2_000)), ValueError);
  await assert.rejects(ann.moveTo({ x: 1, y: 0, z: 1 }), ValueError);
  assert.equal(ann.waiting, 0);
  ann.close();
  const { ann: eve } = await player({ judged: false });
  assert.throws(() => eve.walk(1, 0), ValueError);
  eve.close();
});

test('where positions are trusted, a refused move is taken back', async () => {
  const { ann, line } = await player({ judged: false });
  const good = ann.moveTo({ x: 1_100, y: 0, z: 1_000 });
  const bad = ann.moveTo({ x: -1, y: 0, z: 1_000 });
  assert.equal(ann.position().x, -1);
  line().send(frame({ ack: 2, refused: [[2, 6]] }));
  await good;
  await assert.rejects(bad, { reason: 'out_of_bounds' });
  assert.equal(ann.position().x, 1_100);
  ann.close();
});

test('unconfirmed inputs name the actions among them', async () => {
  const { ann, line } = await player();
  const all = [ann.act(Uint8Array.of(1)), ann.face(5), ann.act(Uint8Array.of(2), 44), ann.act(Uint8Array.of(3))];
  line().send(frame({ ack: 4 }));
  await Promise.all(all);
  const told = ann.once('unconfirmed');
  line().send(message(72, [2, 3]));
  assert.deepEqual(await told, [[{ payload: Uint8Array.of(2), aim: 44 }]]);
  ann.close();
});

test('leaving ends the session in order', async () => {
  const { ann, line } = await player();
  const closed = ann.once('closed');
  await ann.leave();
  assert.equal((await closed)[0].code, 1000);
  assert.equal(line().received.at(-1).name, 'Leave');
  await ann.leave();
});

test('the player pings, and estimates the clock of the server', async () => {
  let time = 50;
  const { ann, line } = await player({}, { now: () => time });
  ann.update();
  const [nonce] = line().received.at(-1).fields;
  time += 40;
  line().send(message(67, [nonce, 7_000, 70]));
  await turn();
  assert.equal(ann.serverNow(), 7_020);
  for (let n = 0; n < 300; n++) {
    time += 100;
    ann.update();
  }
  const pings = line().received.filter((m) => m.name === 'Ping').length;
  assert.ok(pings >= 8 && pings <= 11, `${pings} pings in half a minute`);
  ann.close();
});

test('walking sends commands, and corrections are followed', async () => {
  let time = 1_000;
  const { ann, line } = await player({}, { now: () => time });
  ann.walk(1, 0);
  time += 400;
  ann.update();
  assert.deepEqual(ann.position(), { x: 1_200, y: 0, z: 1_000 });
  const [walk] = inputs(line());
  assert.deepEqual(walk, { name: 'Walk', fields: [1, 0, 1_000, [1, [1_000, 0, 1_000], 5_000, 0, null]] });
  const own = [1, [0, null, [1, [1_050, 0, 1_000], 0, 0, null]], 500, 0, []];
  line().send(frame({ ack: 1, refused: [[1, 16]], own }));
  const [error] = await ann.once('refused');
  assert.equal(error.reason, 'blocked');
  assert.deepEqual(ann.position(), { x: 1_050, y: 0, z: 1_000 });
  assert.deepEqual(ann.shown(), { x: 1_200, y: 0, z: 1_000 }, 'the picture does not jump');
  ann.walk(0, 1);
  assert.deepEqual(inputs(line()).at(-1).fields.slice(0, 2), [2, 1]);
  ann.close();
});

test('a speed that is granted for a time is spent once, and one without an end is walked at', async () => {
  let time = 1_000;
  const { ann, line } = await player({}, { now: () => time });
  assert.equal(ann.dash(1, 0), false, 'none is granted');
  const standing = [0, null, [1, [1_000, 0, 1_000], 0, 0, null]];
  const grants = [[1, 600, null], [2, 800, 200], [3, 2_000, 300], [4, 2_000, 0]];
  line().send(frame({ own: [0, standing, 500, 0, grants] }));
  await ann.once('frame');
  assert.equal(ann.walker.speed, 600);
  assert.equal(ann.dash(1, 0), true, 'the fastest');
  const form = [1, [1_000, 0, 1_000], 20_000, 0, 300];
  assert.deepEqual(inputs(line()).at(-1).fields, [1, 0, 1_000, form]);
  time += 1_000;
  ann.update();
  assert.deepEqual(ann.position(), { x: 1_600, y: 0, z: 1_000 }, 'it ends by itself');
  line().send(frame({ ack: 1 }));
  await ann.once('frame');
  assert.equal(ann.dash(0, 1), true, 'the one that is left');
  assert.deepEqual(inputs(line()).at(-1).fields[3], [1, [1_600, 0, 1_000], 0, 8_000, 200]);
  time += 1_000;
  ann.update();
  assert.equal(ann.dash(0, 1), false, 'all are spent');
  ann.walk(0, 1);
  assert.deepEqual(inputs(line()).at(-1).fields[3], [1, [1_600, 0, 1_160], 0, 6_000, null]);
  // The grant without an end is taken back: the player walks on at its own speed.
  line().send(frame({ ack: 3, own: [0, standing, 500, 0, []] }));
  await ann.once('frame');
  time += 100;
  ann.update();
  assert.deepEqual(inputs(line()).at(-1).fields[3].slice(2), [0, 5_000, null]);
  ann.close();
});
