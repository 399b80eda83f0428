// Client for Purview servers. `Player.join` is where to begin.
export { Player } from './session/player.js';
export { beyond, Entity, View } from './view.js';
export { CUTSCENE, DEAD, ROOTED, Walker } from './walker.js';
export { ClockEstimate, systemClock } from './clock.js';
export { Emitter } from './events.js';
export { Cells, CellsError, Display, DisplayClock, Track } from './display/index.js';
export { Grid, open } from './movement/ground.js';
export { Path, Vector } from './movement/move.js';
export { Trajectory } from './movement/trajectory.js';
export { readValue, writeValue } from './value.js';
export { webSocket } from './transport/websocket.js';
export { BehindError, ClosedError, ConnectionError, DecodeError, LostError, ProtocolError, PurviewError, RefusedError, ValueError, ViewError, } from './errors.js';
export { decode, encode } from './wire/codec.js';
export { CLOSES, ERRORS, PROTOCOL_VERSION } from './wire/messages.js';
