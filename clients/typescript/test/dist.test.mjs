// The compiled files in `dist`, which pages load as they are, are those of the sources.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Each file below a folder, with its text. */
function files(folder) {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const named = all.map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return Object.fromEntries(named.sort().map((path) => [path.slice(folder.length), readFileSync(path, 'utf8')]));
}

test('the committed files are compiled from the sources', () => {
  const fresh = mkdtempSync(join(tmpdir(), 'purview-client-'));
  try {
    execFileSync(process.execPath, [`${root}tools/build.mjs`, `${fresh}/dist`], { stdio: 'inherit' });
    const [made, committed] = [files(`${fresh}/dist`), files(`${root}dist`)];
    assert.deepEqual(Object.keys(committed), Object.keys(made));
    for (const [path, text] of Object.entries(made)) {
      assert.equal(committed[path], text, `dist${path} is old: npm run build`);
    }
  } finally {
    rmSync(fresh, { recursive: true });
  }
});
