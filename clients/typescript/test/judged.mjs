// Players against a real server, judged by a test. The first line of standard input is the plan, in
// JSON; each further one is a door that has turned. Every line of the output is
//
//   [player, 'joining' | 'sent' | 'came' | 'gone', base64]   each message, before it is sent or read
//   { mark }                                                 this time of the plan has come
//   { rest, at, seen }                                       where a resting player is and sees others
//   { dashed }                                               a player has spent a speed that it was granted
//
// in the order in which it happens.

import { createInterface } from 'node:readline';

import WebSocket from 'ws';

import { Grid, Player, webSocket } from '../dist/index.js';
import { rng } from './support.mjs';

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const start = performance.now();
const until = (ms) => sleep(Math.max(0, start + ms - performance.now()));

/** The ground of the players that know the map. */
let map = null;

function overheard(player) {
  const open = webSocket(WebSocket);
  const tell = (what, bytes) => say([player, what, Buffer.from(bytes).toString('base64')]);
  return (address, events) => {
    const channel = open(address, {
      opened: () => events.opened(),
      message: (bytes) => (tell('came', bytes), events.message(bytes)),
      closed: (code, detail) => events.closed(code, detail),
    });
    return { send: (bytes) => (tell('sent', bytes), channel.send(bytes)), close: () => channel.close() };
  };
}

/** Follows a recorded way: milliseconds and a place. */
async function follow(player, way) {
  for (let at = 0; at < way.length - 1; ) {
    await sleep(60);
    const now = performance.now() - start;
    const next = way.findLastIndex(([ms]) => ms <= now);
    if (next > at) player.walkTo({ x: way[next][1], z: way[next][2] });
    at = Math.max(at, next);
  }
}

/** Walks to places of an area, which may be behind walls, and to and fro through its gate; acts now and then. */
async function wander(player, n, { west, north, east, south, gate, lasts }) {
  const random = rng(n);
  while (performance.now() - start < lasts) {
    const { x, z } = player.position();
    const side = Math.sign(x - gate.x) || 1;
    const isBefore = Math.abs(z - gate.z) < 60;
    const through = { x: gate.x + side * (isBefore ? -500 : 450), z: gate.z };
    const anywhere = { x: west + random(east - west), z: north + random(south - north) };
    player.walkTo(random(3) === 0 ? anywhere : through);
    await sleep(300 + random(900));
    if (random(3) === 0) player.act(new TextEncoder().encode(`${n} ${performance.now()}`));
  }
}

/** Spends the first speed that is granted. */
async function dash(player, n, [dx, dz]) {
  while (!player.dash(dx, dz)) await player.once('frame');
  say({ dashed: n });
  await sleep(1_000);
}

const places = (player) => {
  const at = player.view.timeOf(player.view.tick);
  return [...player.view].map((e) => [e.id, e.position(at).x, e.position(at).z]);
};

async function play(plan, of, n, resting) {
  await until(of.from ?? 0);
  say([n, 'joining', '']);
  const { addresses, token, pos } = of;
  const options = { addresses, token: () => token, scene: plan.scene, pos, transport: overheard(n) };
  const player = await Player.join({ ...options, ...(of.knows && { tiles: () => map }) });
  let isLeaving = false;
  player.on('closed', () => isLeaving || say([n, 'gone', '']));
  if (of.way) await follow(player, of.way);
  else if (of.dash) await dash(player, n, of.dash);
  else await wander(player, n, plan.area);
  player.stop();
  while (player.waiting > 0 || !player.isConnected) await sleep(50);
  if (plan.area) {
    resting.count += 1;
    while (resting.count < plan.players.length) await sleep(50);
    await sleep(1_000);
    const { x, z } = player.position();
    say({ rest: player.id, at: [x, z], seen: places(player) });
    await sleep(500);
  }
  isLeaving = true;
  await player.leave();
}

async function run(plan) {
  if (plan.map) {
    const { tile, size, walls } = plan.map;
    map = new Grid(tile, ...size, new Uint8Array(size[0] * size[1]));
    for (const wall of walls) map.set(...wall, false);
  }
  for (const mark of plan.marks) setTimeout(() => say({ mark }), start + mark - performance.now());
  if (plan.stall) {
    void until(plan.stall.at).then(() => {
      const end = performance.now() + plan.stall.lasts;
      while (performance.now() < end);
    });
  }
  const resting = { count: 0 };
  await Promise.all(plan.players.map((of, n) => play(plan, of, n, resting)));
  process.exit(0);
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const told = JSON.parse(line);
  if (told.players) void run(told);
  else map?.set(...told.tiles, told.open);
});
