// Movement against the vectors of clients/conformance: to the centimetre and the millisecond.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ClockEstimate, Grid, Walker } from '../dist/index.js';
import { Blend } from '../dist/movement/blend.js';
import { Bodies } from '../dist/movement/ground.js';
import { moveOf, Vector } from '../dist/movement/move.js';
import { Predictor } from '../dist/movement/predictor.js';
import { vectors } from './support.mjs';

const golden = vectors('movement.json');

const at = ([x, y, z]) => ({ x, y, z });
const list = ({ x, y, z }) => [x, y, z];
const form = (f) => ({ ...f, start: at(f.start) });

function checkMoves(cases) {
  assert.ok(cases.length >= 20);
  for (const c of cases) {
    const move = moveOf(form(c.form), c.tile_cm);
    const what = JSON.stringify(c.form);
    assert.equal(move.walkMs, c.walk_ms, what);
    assert.equal(move.speed, c.speed, what);
    for (const [ms, where] of c.at) assert.deepEqual(list(move.position(ms)), where, `${what} at ${ms}`);
    for (const [ms, steps] of c.rest ?? []) assert.equal(move.rest(ms), steps, `${what} at ${ms}`);
  }
}

test('vectors are where the server has them', () => checkMoves(golden.vectors));

test('paths are where the server has them', () => checkMoves(golden.paths));

test('headings have the velocities of the server', () => {
  for (const [dx, dz, speed, vx, vz] of golden.headings) {
    const heading = Vector.heading({ x: 0, y: 0, z: 0 }, dx, dz, speed);
    assert.deepEqual([heading.vx, heading.vz], [vx, vz], `${dx}, ${dz} at ${speed}`);
  }
});

test('the clock is estimated alike', () => {
  const clock = new ClockEstimate();
  assert.equal(clock.server(0), null);
  for (const [sent, received, server, now, says, error, delay] of golden.clock) {
    clock.pong(sent, received, server);
    assert.deepEqual([clock.server(now), clock.errorMs(now), clock.delayMs(now)], [says, error, delay]);
  }
});

test('corrections are blended alike', () => {
  for (const c of golden.blends) {
    const blend = new Blend(c.lasts_ms, c.snap_cm);
    blend.begin(1_000, at(c.shown), at(c.is));
    for (const [ms, where] of c.at) assert.deepEqual(list(blend.shown(ms, at(c.later))), where);
  }
});

function ground(hilly) {
  const blocked = Uint8Array.from([...golden.map.join('')].map((tile) => (tile === '#' ? 1 : 0)));
  const heights = hilly ? Int32Array.from(golden.heights.flat()) : null;
  return new Grid(100, golden.map[0].length, golden.map.length, blocked, heights);
}

function said(command) {
  const move = command.motion?.form() ?? null;
  return { correction: command.correction, at_ms: command.at, form: move && { ...move, start: list(move.start) } };
}

for (const walk of golden.walks) {
  test(`walk ${walk.seed}: the same commands and positions, over walls, stalls and corrections`, () => {
    const tiles = ground(walk.hilly);
    const { climb } = walk;
    const on = { tiles, plane: 0, width: 1_600, depth: 1_200, climb, commandMs: 500, graceMs: 300, leashMs: 1_000 };
    const player = new Predictor(5_000, at(walk.start), 0, on);
    const sent = [];
    for (const [i, step] of walk.steps.entries()) {
      const what = `step ${i} at ${step.now}`;
      if (step.wish) player.wish(step.wish);
      if (step.ack) player.acked(step.now, sent[step.ack - 1]);
      if (step.correct) {
        const { number, lasts_ms: lasts } = step.correct;
        player.corrected(step.now, number, moveOf(form(step.correct.form), 100), lasts);
      }
      const commands = [];
      for (let command; (command = player.poll(step.now)); ) commands.push(command);
      sent.push(...commands);
      assert.deepEqual(commands.map(said), step.commands, what);
      assert.deepEqual(list(player.position(step.now)), step.position, what);
      assert.deepEqual(list(player.shown(step.now)), step.shown, what);
      assert.equal(player.isHeld, step.held, what);
    }
  });
}

/** A walker at (10.5, 10.5) m in a scene where entities of kind 3 block, with bodies of this size. */
function among(sizeCm) {
  const movement = {
    tickMs: 100, tileCm: 100, topSpeed: 2_000, commandMs: 500, graceMs: 300, leashMs: 1_000, climb: null,
    blocks: [{ kind: 3, sizeCm }],
  };
  const pos = { x: 1_050, y: 0, z: 1_050 };
  const form = { form: 1, start: pos, vx: 0, vz: 0, lasts: null };
  const own = { correction: 0, trajectory: { startMs: 0, lastsMs: 0, form }, speed: 500, flags: 0, grants: [] };
  const walker = Walker.of(0, { pos, plane: 0, own, rules: { movement, sizeCm: [10_000, 10_000] } });
  const sees = (...seen) => walker.sees({ tick: 1, timeOf: () => 100, [Symbol.iterator]: () => seen.values() });
  const walk = (now, dx) => {
    walker.walk(dx, 0);
    walker.acked(now, walker.poll(now));
  };
  return { walker, sees, walk };
}

const seen = (kind, x, z = 1_050) => ({ kind, position: () => ({ x, y: 0, z }) });

test('the player stops before what it sees in its way, and walks on when that is gone', () => {
  const { walker, sees, walk } = among([100, 100]);
  sees(seen(1, 1_150), seen(3, 1_250));
  walk(0, 1);
  assert.equal(walker.position(700).x, 1_199);
  sees(seen(1, 1_150));
  walker.stop();
  walker.poll(800);
  walk(900, 1);
  assert.ok(walker.position(1_600).x > 1_300);
});

test('the player stops at the edge of a large body, and leaves one in which it stands', () => {
  const { walker, sees, walk } = among([800, 300]);
  // Tiles 12 to 19, and 10 to 12 southwards.
  sees(seen(3, 1_600, 1_150));
  walk(0, 1);
  assert.equal(walker.position(700).x, 1_199);
  // It has come over the player: tiles 9 to 16.
  sees(seen(3, 1_300, 1_150));
  walk(900, -1);
  assert.equal(walker.position(1_500).x, 899);
  walk(1_600, 1);
  assert.equal(walker.position(2_300).x, 899);
});

test('a body occupies the tiles whose middles it covers', () => {
  const tiles = (sizeCm, x, z) => {
    const bodies = new Bodies();
    bodies.take([{ at: { x, y: 0, z }, sizeCm }], 100);
    const outside = { x: 99, z: 99 };
    const all = [...Array(20).keys()].map((n) => n - 10);
    const on = (where) => all.filter((n) => bodies.stop(outside, where(n)));
    const [column, row] = [Math.floor(x / 100), Math.floor(z / 100)];
    return [on((n) => ({ x: n, z: row })), on((n) => ({ x: column, z: n }))].map((at) => [at[0], at.at(-1)]);
  };
  assert.deepEqual(tiles([0, 100], 250, -1), [[2, 2], [-1, -1]]);
  assert.deepEqual(tiles([400, 300], 0, 99), [[-2, 1], [-1, 1]]);
  assert.deepEqual(tiles([400, 300], 49, -100), [[-2, 1], [-2, 0]]);
  assert.deepEqual(tiles([400, 250], 50, 50), [[-1, 2], [-1, 1]]);
  assert.deepEqual(tiles([250, 250], 10, 90), [[-1, 0], [0, 1]]);
});
