// Smooth display of what the server tells, and the choice of static content around the player.
export { Cells, CellsError } from './cells.js';
export { DisplayClock } from './clock.js';
export { Display } from './display.js';
export { Track } from './track.js';
