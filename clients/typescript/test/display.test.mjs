// The display and the cells answer as the vectors say, which the Rust library wrote.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Cells, CellsError, Display, Path, Trajectory, Vector } from '../dist/index.js';
import { Blend } from '../dist/movement/blend.js';
import { vectors as read } from './support.mjs';

const vectors = read('display.json');

const place = ([x, y, z]) => ({ x, y, z });
const list = ({ x, y, z }) => [x, y, z];

/** A motion of the file, as the display takes it. */
function motion(told) {
  if (told.sample) {
    const { at_ms, span_ms, pos, vx, vz } = told.sample;
    return { atMs: at_ms, spanMs: span_ms, pos: place(pos), vx, vz };
  }
  if (told.vector) {
    const { begins_ms, start, vx_mm_s, vz_mm_s, lasts_ms } = told.vector;
    return new Trajectory(new Vector(place(start), vx_mm_s, vz_mm_s), begins_ms, lasts_ms ?? undefined);
  }
  const { begins_ms, start, steps, speed_cm_s, tile_cm } = told.path;
  return new Trajectory(new Path(place(start), steps, speed_cm_s, tile_cm), begins_ms);
}

/** Does a step of the file; gives what was drawn, after a picture. */
function step(display, ids, { pong, frame, enter, told, leave, clear, picture }) {
  if (pong) display.pong(pong.now_us);
  if (frame) display.frame(frame.now_us, frame.server_us, frame.told_us, frame.tick_us);
  if (enter) {
    display.enter(enter.id, motion(enter.motion));
    ids.push(enter.id);
  }
  if (told) display.told(told.id, motion(told.motion));
  if (leave) {
    display.leave(leave.id);
    ids.splice(ids.indexOf(leave.id), 1);
  }
  if (clear) {
    display.clear();
    ids.length = 0;
  }
  if (!picture) return null;
  const advance = display.advance(picture.now_us, picture.server_us);
  const entities = ids.map((id) => [id, ...list(display.position(id))]);
  return { advance, time_us: display.clock.timeUs, delay_us: display.clock.delayUs(), entities };
}

for (const { name, steps } of vectors.display) {
  test(`the display answers to the centimetre: ${name}`, () => {
    const [display, ids] = [new Display(), []];
    let pictures = 0;
    steps.forEach((one, n) => {
      const drawn = step(display, ids, one);
      if (!drawn) return;
      pictures += 1;
      assert.deepEqual(drawn, one.picture.want, `step ${n}`);
    });
    assert.ok(pictures > 20, 'the file has pictures');
  });
}

test('a correction of the player is spread', () => {
  const blend = new Blend();
  for (const { begin, shown } of vectors.blend) {
    if (begin) blend.begin(begin.now_ms, place(begin.shown), place(begin.is));
    else assert.deepEqual(list(blend.shown(shown.now_ms, place(shown.is))), shown.want);
  }
});

test('cells are loaded and unloaded, and none twice', () => {
  const { rules, steps } = vectors.cells;
  const cells = new Cells(rules);
  const pairs = (all) => all.map(({ column, row }) => [column, row]);
  const loaded = new Set();
  steps.forEach(({ at: [x, z], load, unload }, n) => {
    const change = cells.update({ x, z });
    assert.deepEqual([pairs(change.load), pairs(change.unload)], [load, unload], `step ${n}`);
    for (const { column, row } of change.load) {
      assert.ok(!loaded.has(`${column},${row}`), `step ${n} loads a cell twice`);
      loaded.add(`${column},${row}`);
    }
    for (const { column, row } of change.unload) assert.ok(loaded.delete(`${column},${row}`));
  });
});

test('sides and radii are checked', () => {
  const rules = { width: 100, depth: 100, cell: 10, enter: 5, leave: 9 };
  for (const wrong of [{ cell: 0 }, { leave: 5 }, { enter: -1 }, { width: 1.5 }]) {
    assert.throws(() => new Cells({ ...rules, ...wrong }), CellsError);
  }
});
