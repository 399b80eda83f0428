// Smooth display of what the server tells, and the choice of static content around the player.

export { type Cell, type CellChange, type CellRules, Cells, CellsError } from './cells.js';
export { type Advance, DisplayClock } from './clock.js';
export { Display } from './display.js';
export { type Evaluated, type Motion, type Sample, Track } from './track.js';
