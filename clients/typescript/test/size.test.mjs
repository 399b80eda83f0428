// The package stays small for pages: its size bundled, minified and compressed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

const LIMIT = 25_000;

test('the client has at most 25 kB, minified and gzipped, and nothing of Node', async () => {
  const entry = fileURLToPath(new URL('../dist/index.js', import.meta.url));
  const made = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    write: false,
  });
  const bundle = made.outputFiles[0].contents;
  const size = gzipSync(bundle, { level: 9 }).length;
  console.log(`${bundle.length} bytes minified, ${size} gzipped`);
  assert.ok(size <= LIMIT, `${size} bytes`);
  assert.ok(size > 5_000, 'the whole client was measured');
});
