// Compiles src to dist, or to the folder of the first argument.

import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = process.argv[2] ?? `${root}dist`;
rmSync(out, { recursive: true, force: true });
const tsc = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));
execFileSync(process.execPath, [tsc, '-p', root, '--outDir', out], { stdio: 'inherit' });
