// Movement against the vectors of clients/conformance: to the centimetre and the millisecond.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ClockEstimate, Grid, Walker } from '../dist/index.js';
import { Blend } from '../dist/movement/blend.js';
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

test('the player stops before what it sees in its way, and walks on when that is gone', () => {
  const movement = {
    tickMs: 100, tileCm: 100, topSpeed: 2_000, commandMs: 500, graceMs: 300, leashMs: 1_000, climb: null, blocks: [3],
  };
  const pos = { x: 1_050, y: 0, z: 1_050 };
  const form = { form: 1, start: pos, vx: 0, vz: 0, lasts: null };
  const own = { correction: 0, trajectory: { startMs: 0, lastsMs: 0, form }, speed: 500, flags: 0, grants: [] };
  const joined = { pos, plane: 0, own, rules: { movement, sizeCm: [10_000, 10_000] } };
  const walker = Walker.of(0, joined);
  const view = (...seen) => ({ tick: 1, timeOf: () => 100, [Symbol.iterator]: () => seen.values() });
  const seen = (kind, x) => ({ kind, position: () => ({ ...pos, x }) });
  const walk = (now) => {
    walker.walk(1, 0);
    const command = walker.poll(now);
    walker.acked(now, command);
  };
  walker.sees(view(seen(1, 1_150), seen(3, 1_250)));
  walk(0);
  assert.equal(walker.position(700).x, 1_199);
  walker.sees(view(seen(1, 1_150)));
  walker.stop();
  walker.poll(800);
  walk(900);
  assert.ok(walker.position(1_600).x > 1_300);
});
