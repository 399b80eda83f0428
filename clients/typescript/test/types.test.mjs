// What a game writes compiles with the declared types, and what is wrong does not.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import ts from 'typescript';

const PROGRAM = `
import { Player, type PropertiesOf, type Schema } from './dist/index.js';
import { tcp } from './dist/transport/tcp.js';

export const schema = { scenes: [{ name: 'keep', kinds: [
  { name: 'player', properties: [
    { name: 'hp', id: 1, type: 'int', audience: 'viewers', writer: 'logic' },
    { name: 'stance', id: 2, type: 'text', audience: 'viewers', writer: 'owner' },
  ] },
] }] } as const satisfies Schema;

type Hero = PropertiesOf<typeof schema, 'keep', 'player'>;

const player = await Player.join({ addresses: 'tcp://127.0.0.1:1', token: 't', scene: 'keep', schema, transport: tcp() });
player.view.on('leave', (entity, why) => {
  const word: 'view' | 'world' = why;
  const hp: number | bigint | null | undefined = entity.as<Hero>().hp;
  console.log(word, hp);
});
player.on('refused', (error) => console.log(error.reason === 'blocked'));
// @ts-expect-error There is no such property.
player.view.me.as<Hero>().mana;
// @ts-expect-error There is no such code.
player.on('refused', (error) => console.log(error.reason === 'blockd'));
// @ts-expect-error There is no such event.
player.view.on('left', () => {});
// @ts-expect-error A join names its scene.
void Player.join({ addresses: [], token: 't' });
// @ts-expect-error There is no such type.
({ scenes: [{ name: 'a', kinds: [{ name: 'b', properties: [{ name: 'c', id: 1, type: 'integer', audience: 'viewers', writer: 'logic' }] }] }] }) satisfies Schema;
`;

/** The first message of the compiler about a program, or an empty text. */
function wrong(source) {
  const name = fileURLToPath(new URL('../program.ts', import.meta.url));
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.Node16, strict: true, noEmit: true, types: ['node'], lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'] };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (file, ...rest) =>
    file === name ? ts.createSourceFile(file, source, ts.ScriptTarget.ES2022) : getSourceFile.call(host, file, ...rest);
  host.fileExists = (file) => file === name || fileExists(file);
  host.readFile = (file) => (file === name ? source : readFile(file));
  const [first] = ts.getPreEmitDiagnostics(ts.createProgram([name], options, host));
  return first ? ts.flattenDiagnosticMessageText(first.messageText, '\n') : '';
}

test('the types fit what a game writes, and refuse what is wrong', () => {
  assert.equal(wrong(PROGRAM), '');
});
