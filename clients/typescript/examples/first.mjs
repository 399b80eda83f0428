// The first program of docs/guide/client.md; a test runs it against `purview dev`:
//
//   node examples/first.mjs tcp://127.0.0.1:7712 TOKEN

// ANCHOR: program
import { Player } from '@purview/client';
import { tcp } from '@purview/client/tcp';

const [addresses, token] = process.argv.slice(2);
const player = await Player.join({ addresses, token, scene: 'meadow', transport: tcp() });
console.log(`joined ${player.place.scene} as ${player.id}`);

player.view.on('enter', (entity) => console.log(`${entity.kindName} ${entity.id} comes`));
player.view.on('leave', (entity, why) => console.log(`${entity.id} leaves the ${why}`));
player.on('refused', (error) => console.log(error.message));

const from = player.position();
player.walk(1, 0);
await new Promise((resolve) => setTimeout(resolve, 2_000));
player.stop();
console.log(`walked ${player.position().x - from.x} cm east`);

await player.act(new TextEncoder().encode('hello'));
await player.leave();
console.log('left');
// ANCHOR_END: program
