// Client for Purview servers. `Player.join` is where to begin.

export { Player } from './session/player.js';
export type { Action, Arrival, PlayerEvents } from './session/player.js';
export type { Options, Retry } from './session/options.js';
export { beyond, Entity, View } from './view.js';
export type { Change, CrowdDots, LeaveReason, ViewEvents } from './view.js';
export { CUTSCENE, DEAD, ROOTED, Walker } from './walker.js';
export { ClockEstimate, systemClock } from './clock.js';
export type { Now } from './clock.js';
export { Emitter } from './events.js';
export type { Listener } from './events.js';
export { Cells, CellsError, Display, DisplayClock, Track } from './display/index.js';
export type { Advance, Cell, CellChange, CellRules, Evaluated, Motion, Sample } from './display/index.js';
export { Grid, open } from './movement/ground.js';
export type { Tiles } from './movement/ground.js';
export type { Position } from './movement/integers.js';
export { Path, Vector } from './movement/move.js';
export type { Move, Tile } from './movement/move.js';
export { Trajectory } from './movement/trajectory.js';
export type { KindSchema, PropertiesOf, PropertySchema, SceneSchema, Schema } from './schema.js';
export { readValue, writeValue } from './value.js';
export type { Value, ValueType } from './value.js';
export { webSocket } from './transport/websocket.js';
export type { WebSocketClass, WebSocketLike } from './transport/websocket.js';
export type { Channel, ChannelEvents, Transport } from './transport/transport.js';
export {
  BehindError,
  ClosedError,
  ConnectionError,
  DecodeError,
  LostError,
  ProtocolError,
  PurviewError,
  RefusedError,
  ValueError,
  ViewError,
} from './errors.js';
export type { DecodeFault } from './errors.js';
export { decode, encode } from './wire/codec.js';
export { CLOSES, ERRORS, PROTOCOL_VERSION } from './wire/messages.js';
export type { ClientMessage, CloseName, ErrorName, Frame, Joined, JoinRules, Line, Lines, ServerMessage, Welcome } from './wire/messages.js';
