// The view: entities come, go and change, and a resync or another world is told as what it is.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { beyond, decode, View, ViewError } from '../dist/index.js';
import { frame, joined } from './fake.mjs';

const schema = {
  scenes: [
    {
      name: 'meadow',
      kinds: [
        { name: 'player', properties: [{ name: 'hp', id: 1, type: 'int', audience: 'viewers', writer: 'logic' }] },
        { name: 'wolf', properties: [{ name: 'mood', id: 1, type: 'text', audience: 'viewers', writer: 'logic' }] },
      ],
    },
  ],
};

/** MessagePack of small numbers and short texts. */
const value = (v) => (typeof v === 'number' ? Uint8Array.of(v) : Uint8Array.of(0xa0 | v.length, ...Buffer.from(v)));

const entered = (id, of = {}) => [
  id, of.kind ?? 0, of.x ?? 100, 0, 200, 0, (of.properties ?? []).map(([p, v]) => [p, 1, value(v)]), of.trajectory ?? null,
];

function fresh(of = {}) {
  const view = new View(decode(joined(of)), schema);
  const events = [];
  view.on('enter', (e) => events.push(`enter ${e.id}`));
  view.on('leave', (e, why) => events.push(`leave ${e.id} ${why}`));
  view.on('update', (e, change) => events.push(`update ${e.id} ${change}`));
  view.on('property', (e, name, v, before) => events.push(`property ${e.id} ${name} ${before} -> ${v}`));
  view.on('act', (e, payload, byLogic) => events.push(`act ${e.id} ${payload} ${byLogic}`));
  return { view, events, apply: (f) => (view.apply(decode(frame(f))), events.splice(0)) };
}

test('entities enter, change and leave, and have names', () => {
  const { view, apply } = fresh();
  const first = apply({ enters: [entered(20, { properties: [[1, 5]] }), entered(21, { kind: 1, properties: [[1, 'sly']] })] });
  assert.deepEqual(first, ['enter 20', 'enter 21']);
  assert.deepEqual([view.get(20).kindName, view.get(20).get('hp')], ['player', 5]);
  assert.deepEqual([view.get(21).kindName, view.get(21).as().mood], ['wolf', 'sly']);
  const second = apply({
    moves: [[20, 300, 0, 400, 0, 0, 7]],
    turns: [[21, 9], [9, 77]],
    properties: [[20, 1, 2, value(4)], [9, 1, 1, value(8)], [21, 1, 2, value('sly')]],
    acts: [[21, Uint8Array.of(1), true]],
  });
  assert.deepEqual(second, [
    'update 20 position', 'update 21 facing', 'update 9 facing', 'act 21 1 true', 'property 20 hp 5 -> 4',
    'property 9 hp undefined -> 8',
  ]);
  assert.deepEqual([view.get(20).pos, view.get(20).facing], [{ x: 300, y: 0, z: 400 }, 7]);
  assert.deepEqual([view.me.facing, view.me.get('hp')], [77, 8]);
  assert.deepEqual(apply({ leaves: [20], acts: [[20, Uint8Array.of(2), false]] }), ['leave 20 view', 'act 20 2 false']);
  assert.deepEqual([view.size, [...view].map((e) => e.id), view.has(20)], [1, [21], false]);
});

test('after a resync an entity that is still there is only updated', () => {
  const { view, apply } = fresh();
  apply({ enters: [entered(20, { properties: [[1, 5]] }), entered(21), entered(22)] });
  const kept = view.get(20);
  const told = apply({ resync: true, enters: [entered(20, { x: 900, properties: [[1, 3]] }), entered(22), entered(30)] });
  assert.deepEqual(told, ['leave 21 view', 'update 20 position', 'property 20 hp 5 -> 3', 'enter 30']);
  assert.equal(view.get(20), kept);
  assert.deepEqual(apply({ properties: [[9, 1, 1, value(8)]] }), ['property 9 hp undefined -> 8']);
  const again = [entered(20, { x: 900, properties: [[1, 3]] }), entered(22), entered(30)];
  assert.deepEqual(apply({ resync: true, enters: again, properties: [[9, 1, 1, value(8)]] }), []);
  assert.equal(view.me.get('hp'), 8);
  assert.equal(kept.pos.x, 900);
});

test('in another scene or plane entities leave by the world', () => {
  const { view, apply } = fresh();
  apply({ enters: [entered(20), entered(21)] });
  view.joined(decode(joined({ plane: 1 })), true);
  assert.deepEqual(apply({ leaves: [20], enters: [entered(40)] }), ['leave 20 world', 'enter 40']);
  // The same entity comes along: it leaves the old world and enters the new one.
  const along = apply({ resync: true, enters: [entered(21)] });
  assert.deepEqual(along, ['leave 21 world', 'leave 40 view', 'enter 21']);
  assert.deepEqual(apply({ leaves: [21] }), ['leave 21 view']);
});

test('trajectories give positions at the time of the server', () => {
  const { view, apply } = fresh();
  const going = [1_000, 500, [1, [100, 0, 200], 2_000, 0, null]];
  apply({ enters: [entered(20, { trajectory: going }), entered(21)], tick: 100_000 });
  const at = (ms) => view.get(20).position(ms).x;
  assert.deepEqual([at(0), at(1_000), at(1_250), at(9_000)], [100, 100, 150, 200]);
  apply({ trajectories: [[20, [2_000, null, [0, [150, 0, 250], '77', 500]], 3]], tick: 100_001 });
  assert.deepEqual([at(2_000), at(2_200), at(9_000)], [150, 250, 350]);
  // From where it is 50 ms before the tick, 10 cm farther.
  apply({ trajectories: [[20, 50, 10, 0, -5, 0, 1_000, null, 4]], tick: 100_002 });
  const began = 100_002 * 100 - 50;
  assert.deepEqual(view.get(20).position(began), { x: 360, y: 0, z: 245 });
  assert.deepEqual(view.get(20).position(began + 1_000), { x: 360, y: 0, z: 345 });
  apply({ moves: [[21, 500, 0, 500, 100, -50, 0]], tick: 100_003 });
  assert.deepEqual(view.get(21).position(100_003 * 100 + 500), { x: 550, y: 0, z: 475 });
});

test('a frame that contradicts the view changes nothing', () => {
  const { view, events, apply } = fresh();
  apply({ enters: [entered(20)], tick: 200_000 });
  const wrong = [
    { tick: 200_000 },
    { enters: [entered(20)] },
    { enters: [entered(30), entered(30)] },
    { leaves: [31] },
    { leaves: [20, 20] },
    { moves: [[31, 0, 0, 0, 0, 0, 0]] },
    { leaves: [20], moves: [[20, 0, 0, 0, 0, 0, 0]] },
    { trajectories: [[31, [0, null, [1, [0, 0, 0], 0, 0, null]], 0]] },
    { turns: [[31, 0]] },
    { properties: [[31, 0, 1, value(1)]] },
    { acts: [[31, Uint8Array.of(1), false]] },
    { resync: true, acts: [[20, Uint8Array.of(1), false]] },
  ];
  for (const [i, f] of wrong.entries()) {
    const given = { tick: 200_001 + i, enters: f.enters ?? [entered(50 + i)], ...f };
    assert.throws(() => view.apply(decode(frame(given))), ViewError, JSON.stringify(f));
    assert.deepEqual([view.size, view.tick, events], [1, 200_000, []], JSON.stringify(f));
  }
});

test('a crowd gives the middles of cells, and leaves out who is drawn anyway', () => {
  const { view, apply } = fresh();
  assert.equal(view.crowd, null);
  apply({ crowd: [1_600, 4_800, Uint8Array.of(128, 128, 96, 159, 127, 130)] });
  // Patches of 4 m: cells of half a metre.
  assert.deepEqual(view.crowd.dots, [{ x: 1_625, z: 4_825 }, { x: 25, z: 6_375 }, { x: 1_575, z: 4_925 }]);
  assert.deepEqual(beyond(view.crowd, [{ x: 1_630, z: 4_820 }, { x: 9_000, z: 0 }]), view.crowd.dots.slice(1));
});
