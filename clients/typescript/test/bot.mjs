// A headless player against a real server, started by a test with its addresses, tokens and map as
// JSON in the first argument. It tells what it shows, one JSON object a line; the test judges it.
// Lines of its standard input let it go on: the test has done what it was asked for.

import { createInterface } from 'node:readline';

import WebSocket from 'ws';

import { Grid, Player, webSocket } from '../dist/index.js';

const { addresses, tokens, scene, walls, size } = JSON.parse(process.argv[2]);

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const sockets = [];
class Socket extends WebSocket {
  constructor(address) {
    super(address);
    sockets.push(this);
  }
}

function ground(joined) {
  const grid = new Grid(joined.rules.movement.tileCm, size[0], size[1], new Uint8Array(size[0] * size[1]));
  for (const wall of walls) grid.set(...wall, false);
  return grid;
}

async function join(token, pos, tiles) {
  const player = await Player.join({
    addresses, token: () => token, scene, pos, transport: webSocket(Socket), ...(tiles && { tiles }),
  });
  const story = { refused: [], arrivals: [], epochs: new Set() };
  player.on('refused', (error) => story.refused.push(error.reason));
  player.on('joined', (_, arrival) => story.arrivals.push(arrival));
  player.on('closed', (why) => say({ closed: why.message }));
  player.on('frame', (frame) => {
    story.epochs.add(frame.epoch);
    const at = player.view.timeOf(frame.tick);
    const seen = [...player.view].map((entity) => {
      const { x, y, z } = entity.position(at);
      return [entity.id, x, y, z];
    });
    say({ tick: frame.tick, seen });
  });
  return { player, story };
}

/** The player stands, and everything is acknowledged. */
async function rest(name, { player, story }) {
  player.stop();
  for (let n = 0; n < 100 && (player.waiting > 0 || !player.isConnected); n++) await sleep(50);
  await sleep(600);
  const { x, y, z } = player.position();
  const { refused, arrivals } = story;
  say({ rest: name, id: player.id, at: [x, y, z], waiting: player.waiting, correction: player.walker.correction, refused, arrivals, epochs: story.epochs.size });
  story.refused = [];
}

async function go(player, dx, dz, ms) {
  player.walk(dx, dz);
  await sleep(ms);
}

const ann = await join(tokens[0], { x: 11_250, y: 0, z: 4_900 }, ground);
// Through the gate, over the border of two regions, and back against the wall.
await go(ann.player, 1, 0, 5_000);
await go(ann.player, 0, -1, 800);
await go(ann.player, -1, 0, 5_000);
await rest('wall', ann);

// A stall of five seconds in the middle of a walk.
await go(ann.player, 1, 1, 500);
const until = performance.now() + 5_000;
while (performance.now() < until);
await sleep(1_000);
await rest('stall', ann);

// The gateway is killed while the player walks.
await go(ann.player, 1, 0, 400);
const resumed = ann.player.once('joined');
say({ kill: addresses[0] });
await resumed;
await go(ann.player, 0, -1, 700);
await rest('gateway', ann);

// The connection is lost while the player walks.
await go(ann.player, 0, 1, 400);
const back = ann.player.once('joined');
sockets.at(-1).terminate();
await back;
await go(ann.player, 1, 0, 700);
await rest('connection', ann);

// Another player does not know the map: the server stops it at the wall.
const bob = await join(tokens[1], { x: 11_050, y: 0, z: 4_420 });
await go(bob.player, 1, 0, 3_000);
await rest('blind', bob);
await go(bob.player, -1, 0, 700);
await rest('away', bob);

say({ done: true });
await input.next();
await Promise.all([ann.player.leave(), bob.player.leave()]);
process.exit(0);
