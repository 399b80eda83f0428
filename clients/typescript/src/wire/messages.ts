// Written by a test from proto/client/messages.toml: see there. Do not edit.

/** longest message from a client, bytes */
export const MAX_CLIENT_FRAME = 4096;

/** longest message from a server, bytes */
export const MAX_SERVER_FRAME = 1048576;

/** longest value of a property, bytes */
export const MAX_VALUE_BYTES = 1024;

/** all values of an entity together, bytes */
export const MAX_ENTITY_BYTES = 4096;

/** longest payload of an action, bytes */
export const MAX_ACT = 1024;

/** a reserved plane that no client may name */
export const LIMBO = -2147483648;

/** the version in `Hello` */
export const PROTOCOL_VERSION = 5;

/** Why a message was refused. */
export const ERRORS = {
  /** not of the form `[type, [field, ...]]`: cut off, too deep, or bytes follow */
  1: 'malformed',
  /** no message from a client has this type */
  2: 'unknown_type',
  /** a field is missing, wrong or out of range */
  3: 'bad_field',
  /** not legal in this state of the session */
  4: 'premature',
  /** `seq` is not the last number plus one */
  5: 'out_of_order',
  /** the position is not on the map */
  6: 'out_of_bounds',
  /** there is no such scene */
  7: 'unknown_scene',
  /** no line of the scene has room */
  8: 'no_room',
  /** the payload is longer than 1,024 bytes */
  9: 'act_too_long',
  /** not now; the client may try again */
  10: 'busy',
  /** a `Move` under judged moves, or a `Walk` under trusted ones */
  11: 'wrong_form',
  /** the player is rooted, dead or in a cutscene */
  12: 'may_not_move',
  /** the server moves the player now */
  13: 'pushed',
  /** the move does not begin where the last move ended */
  14: 'displaced',
  /** too many moves began a little off */
  15: 'strayed',
  /** a tile is blocked */
  16: 'blocked',
  /** a diagonal step between two blocked tiles */
  17: 'squeezed',
  /** the next tile lies too high or too low */
  18: 'too_steep',
  /** faster than the player may be */
  19: 'too_fast',
  /** a granted speed was used for too long */
  20: 'overused',
  /** the client's clock went back */
  21: 'clock_back',
  /** more walking was claimed than time has passed */
  22: 'clock_ahead',
  /** the correction was never made */
  23: 'unknown_correction',
  /** only the logic chooses places: no `Teleport`, no `pos` in `Join` */
  24: 'may_not_teleport',
  /** the player of a `Resume` is gone */
  25: 'gone',
  /** the ticket of a `Resume` is not valid */
  26: 'bad_ticket',
  /** neither a line of the scene nor named by the token */
  27: 'private_plane',
  /** the server keeps the subject's older session */
  28: 'taken',
  /** the player's kind has no such property */
  29: 'unknown_property',
  /** only the logic sets it */
  30: 'may_not_write',
  /** the value is not of the property's type */
  31: 'wrong_type',
  /** too long for the property or the entity */
  32: 'value_too_long',
  /** more, or longer, actions, turns, teleports, properties or joins than allowed */
  33: 'too_often',
  /** the game refuses the join or teleport; the text says why */
  34: 'not_admitted',
  /** the scene has no such `sight` */
  35: 'no_such_sight',
} as const;

/** Why a message was refused. */
export type ErrorName = (typeof ERRORS)[keyof typeof ERRORS];

/** Why a session was closed. */
export const CLOSES = {
  /** the client left */
  1000: 'normal',
  /** the server stops */
  1001: 'going_away',
  /** a text message */
  1003: 'unsupported',
  /** a message above the limit */
  1009: 'too_big',
  /** too many malformed messages */
  4000: 'protocol',
  /** the protocol version is not supported */
  4001: 'version',
  /** the token is missing, wrong or expired */
  4002: 'token',
  /** no `Hello` and `Join` in time */
  4003: 'handshake',
  /** the server received nothing for too long */
  4004: 'heartbeat',
  /** too many messages */
  4005: 'rate',
  /** the client did not read */
  4006: 'slow',
  /** no room, or too many connections or failed tokens from the address */
  4007: 'overload',
  /** the server failed */
  4008: 'internal',
  /** a newer connection or session of the subject counts */
  4009: 'replaced',
  /** this gateway stops, other gateways go on */
  4010: 'elsewhere',
  /** an operator ended the session, perhaps for a while */
  4011: 'kicked',
  /** the subject has too many sessions (8 by default) */
  4012: 'subject_full',
} as const;

/** Why a session was closed. */
export type CloseName = (typeof CLOSES)[keyof typeof CLOSES];

/** Part of a message: `Line`. */
export interface Line {
  /** the plane */
  plane: number;
  /** its players */
  players: number;
  /** whether it has room */
  open: boolean;
}

/** Part of a message: `Position`. */
export interface Position {
  /** centimetres from the map's west edge */
  x: number;
  /** height, centimetres */
  y: number;
  /** centimetres from the map's north edge */
  z: number;
}

/** Part of a message: `FirstProperty`. */
export interface FirstProperty {
  /** the property */
  id: number;
  /** its value */
  value: Uint8Array;
}

/** Part of a message: `Ticket`. */
export interface Ticket {
  /** for `Resume` alone */
  token: string;
  /** how long the player stays without its client */
  gracePeriodMs: number;
}

/** Part of a message: `JoinRules`. */
export interface JoinRules {
  /** which entities are in range, see below */
  visibility: Visibility;
  /** rings in which players see each other, a sum of 1 NEAR, 2 MIDDLE, 4 FAR */
  range: number;
  /** rings in which this player is shown other kinds */
  sight: number;
  /** sides of a patch along x and z */
  patchCm: number[];
  /** see below; 0 unless `visibility` is `[0]` */
  patchMarginCm: number;
  /** how far apart in height entities may be, see below; nil: any */
  heightCm: number | null;
  /** most players in the view list */
  viewCap: number;
  /** how much nearer a player must be to replace a listed one */
  viewMarginCm: number;
  /** ticks between updates of NEAR, MIDDLE, FAR */
  rates: number[];
  /** the map's width and depth */
  sizeCm: number[];
  /** how moves are judged; nil: moves are trusted */
  movement: MoveRules | null;
  /** how wrong the client may show entities; nil: `rates` alone */
  updates: UpdateRules | null;
}

/** Part of a message: `MoveRules`. */
export interface MoveRules {
  /** milliseconds per tick */
  tickMs: number;
  /** side of a tile */
  tileCm: number;
  /** limit of every speed and grant, centimetres per second */
  topSpeed: number;
  /** how often a walking client sends a command, at least */
  commandMs: number;
  /** how much longer an entity walks without one */
  graceMs: number;
  /** most walking since the oldest unacknowledged command; then a client stops */
  leashMs: number;
  /** how much higher, and lower, the next tile may lie, centimetres; nil: any */
  climb: number[] | null;
  /** kinds whose entities occupy tiles */
  blocks: Blocker[];
}

/** Part of a message: `Blocker`. */
export interface Blocker {
  /** the kind */
  kind: number;
  /** sides of its body along x and z */
  sizeCm: number[];
}

/** Part of a message: `UpdateRules`. */
export interface UpdateRules {
  /** milliseconds per tick */
  tickMs: number;
  /** tolerance for near entities */
  errorMinCm: number;
  /** tolerance as a share of the distance, thousandths */
  errorShare: number;
}

/** Part of a message: `OwnMove`. */
export interface OwnMove {
  /** number of the last correction; 0: none */
  correction: number;
  /** the trajectory, as others are told */
  trajectory: Going;
  /** the player's own top speed, centimetres per second */
  speed: number;
  /** what stops the player: a sum of 1 rooted, 2 dead, 4 cutscene */
  flags: number;
  /** speeds beyond the own, at most four */
  grants: Grant[];
}

/** Part of a message: `Grant`. */
export interface Grant {
  /** the grant's id */
  id: number;
  /** centimetres per second */
  speed: number;
  /** use that is left; nil: until it is taken back */
  leftMs: number | null;
}

/** Part of a message: `Going`. */
export interface Going {
  /** its beginning, by the server's clock */
  startMs: number;
  /** its duration, then the entity stands; nil: until the next one */
  lastsMs: number | null;
  /** the move, see Walk */
  form: Form;
}

/** Part of a message: `Entered`. */
export interface Entered {
  /** the entity */
  id: number;
  /** index into the scene's kinds; 0 is a player */
  kind: number;
  /** centimetres */
  x: number;
  /** height, centimetres */
  y: number;
  /** centimetres */
  z: number;
  /** where it faces */
  facing: number;
  /** those that every viewer may see */
  properties: EnteredProperty[];
  /** nil: it stands until its next position or trajectory */
  trajectory: Going | null;
}

/** Part of a message: `Moved`. */
export interface Moved {
  /** the entity */
  id: number;
  /** centimetres */
  x: number;
  /** height, centimetres */
  y: number;
  /** centimetres */
  z: number;
  /** velocity to the east, centimetres per second */
  vx: number;
  /** velocity to the south, centimetres per second */
  vz: number;
  /** where it faces */
  facing: number;
}

/** Part of a message: `EntityTrajectory`. */
export interface EntityTrajectory {
  /** the entity */
  id: number;
  /** its trajectory */
  trajectory: Going;
  /** where it faces */
  facing: number;
}

/** Part of a message: `NextTrajectory`. */
export interface NextTrajectory {
  /** the entity */
  id: number;
  /** how long before the frame's tick it starts */
  agoMs: number;
  /** how far from there it starts, centimetres to the east */
  dx: number;
  /** the same in height */
  dy: number;
  /** the same to the south */
  dz: number;
  /** velocity to the east, millimetres per second */
  vx: number;
  /** velocity to the south, millimetres per second */
  vz: number;
  /** its duration; nil: until the next trajectory */
  lastsMs: number | null;
  /** where it faces */
  facing: number;
}

/** Part of a message: `Turned`. */
export interface Turned {
  /** the entity */
  id: number;
  /** where it faces */
  facing: number;
}

/** Part of a message: `Crowd`. */
export interface Crowd {
  /** the middle of the player's patch, centimetres */
  x: number;
  /** the same to the south */
  z: number;
  /** two bytes per player */
  dots: Uint8Array;
}

/** Part of a message: `Acted`. */
export interface Acted {
  /** the entity that acts */
  id: number;
  /** the action */
  payload: Uint8Array;
  /** true: from the logic; false: from the entity's client */
  logic: boolean;
}

/** Part of a message: `EnteredProperty`. */
export interface EnteredProperty {
  /** the property */
  id: number;
  /** how often it was set */
  version: number;
  /** its value */
  value: Uint8Array;
}

/** Part of a message: `ChangedProperty`. */
export interface ChangedProperty {
  /** the entity */
  entity: number;
  /** the property */
  id: number;
  /** how often it was set */
  version: number;
  /** its value */
  value: Uint8Array;
}

/** Part of a message: `Message`. */
export interface Message {
  /** to: 0 this player; 1 all with a bond; 2 its plane or scene */
  kind: number;
  /** the message */
  payload: Uint8Array;
}

/** Part of a message: `RefusedInput`. */
export interface RefusedInput {
  /** the input's number */
  seq: number;
  /** why, see Errors */
  code: number;
}

/** `Visibility`: patches. */
export interface VisibilityPatches {
  kind: 'patches';
}

/** `Visibility`: circle. */
export interface VisibilityCircle {
  kind: 'circle';
  /** in range at this distance or nearer, centimetres */
  enter: number;
  /** until beyond this distance, centimetres */
  leave: number;
}

/** `Visibility`: all. */
export interface VisibilityAll {
  kind: 'all';
}

/** which entities are in range. */
export type Visibility = VisibilityPatches | VisibilityCircle | VisibilityAll;

/** `Form`: path. */
export interface FormPath {
  kind: 'path';
  /** where it starts */
  start: Position;
  /** the steps from tile to tile */
  steps: string;
  /** centimetres per second */
  speed: number;
}

/** `Form`: vector. */
export interface FormVector {
  kind: 'vector';
  /** where it starts */
  start: Position;
  /** velocity to the east, millimetres per second */
  vx: number;
  /** velocity to the south, millimetres per second */
  vz: number;
  /** its duration, milliseconds; nil: until the next command */
  lasts: number | null;
}

/** a move. */
export type Form = FormPath | FormVector;

/** a new trajectory: the case with the most fields that the array has room for. */
export type TrajectoryUpdate = (EntityTrajectory & { kind: 'whole' }) | (NextTrajectory & { kind: 'next' });

/** To the server; the answer is `Welcome` or `Refused`, or `Closing` 4001, 4002. */
export interface Hello {
  type: 'Hello';
  /** protocol version, 5 */
  version: number;
  /** the login token (a JWT) */
  token: string;
  /** whether the client wants the crowd */
  crowd: boolean;
}

/** To the server; the answer is `Joined` or `Refused`. */
export interface Join {
  type: 'Join';
  /** the scene's name */
  scene: string;
  /** the plane; nil: a line with room */
  plane: number | null;
  /** where to appear; nil: the last place, or the scene's spawn */
  pos: Position | null;
  /** rings in which the player is shown other kinds; nil: the range */
  sight: number | null;
  /** properties with which the player begins */
  properties: FirstProperty[];
  /** a lower cap of the view list; 0: the scene's */
  viewCap: number;
}

/** To the server; the answer is `ack`. */
export interface Move {
  type: 'Move';
  /** the number */
  seq: number;
  /** where the player now is */
  pos: Position;
}

/** To the server; the answer is `ack`, `Joined`. */
export interface Teleport {
  type: 'Teleport';
  /** the number */
  seq: number;
  /** the scene; nil: the present one */
  scene: string | null;
  /** the plane; nil: the present one, or in another scene a line with room */
  plane: number | null;
  /** the place */
  pos: Position;
}

/** To the server; the answer is `ack`. */
export interface Act {
  type: 'Act';
  /** the number */
  seq: number;
  /** at most 1,024 bytes */
  payload: Uint8Array;
  /** the target player; nil, or left out: none */
  aim: number | null;
}

/** To the server; the answer is `Pong`. */
export interface Ping {
  type: 'Ping';
  /** comes back in the pong */
  nonce: number;
}

/** To the server; the answer is `Left`, `Closing`. */
export interface Leave {
  type: 'Leave';
}

/** To the server; the answer is `ack`. */
export interface Walk {
  type: 'Walk';
  /** the number */
  seq: number;
  /** the last correction that was followed; 0: none */
  correction: number;
  /** when, by the client's own clock */
  atMs: number;
  /** what the player does from then on; nil: as before */
  form: Form | null;
}

/** To the server; the answer is `Joined` or `Refused`. */
export interface Resume {
  type: 'Resume';
  /** the newest ticket's token */
  token: string;
  /** the last input known to be applied; 0: none */
  ack: number;
}

/** To the server; the answer is `ack`. */
export interface Face {
  type: 'Face';
  /** the number */
  seq: number;
  /** where the player faces */
  facing: number;
}

/** To the server; the answer is `ack`. */
export interface Set {
  type: 'Set';
  /** the number */
  seq: number;
  /** the property */
  property: number;
  /** its value */
  value: Uint8Array;
}

/** To the server; the answer is `Lines` or `Refused`. */
export interface AskLines {
  type: 'AskLines';
  /** the scene's name */
  scene: string;
}

/** From the server: answer to `Hello`. */
export interface Welcome {
  type: 'Welcome';
  /** the server's protocol version */
  version: number;
  /** the session's number, for logs */
  session: number;
  /** milliseconds per tick */
  tickMs: number;
  /** the server's clock since its start */
  serverMs: number;
  /** messages per second from the client */
  rateLimit: number;
  /** longest message from the client, bytes */
  maxFrame: number;
  /** how often the server must hear from the client */
  heartbeatMs: number;
}

/** From the server: answer to `Join` and `Resume`; arrival of a `Teleport`. */
export interface Joined {
  type: 'Joined';
  /** the player's entity */
  id: number;
  /** the scene's name */
  scene: string;
  /** the plane */
  plane: number;
  /** where the player stands */
  pos: Position;
  /** where it faces */
  facing: number;
  /** the tick from which this holds */
  tick: number;
  /** rules of views and movement */
  rules: JoinRules;
  /** own movement; nil where moves are trusted */
  own: OwnMove | null;
  /** the last applied input; 0: none */
  ack: number;
  /** for resuming; nil: the client cannot */
  ticket: Ticket | null;
}

/** From the server: at most once per tick while in the world. */
export interface Frame {
  type: 'Frame';
  /** the tick whose state this is */
  tick: number;
  /** the last applied input; 0: none */
  ack: number;
  /** grows with each change of region; for logs */
  epoch: number;
  /** empty the view first: `enters` is the whole view */
  resync: boolean;
  /** come into view */
  enters: Entered[];
  /** go out of view */
  leaves: number[];
  /** new positions */
  moves: Moved[];
  /** new trajectories */
  trajectories: TrajectoryUpdate[];
  /** turns alone */
  turns: Turned[];
  /** actions, in order */
  acts: Acted[];
  /** changed properties */
  properties: ChangedProperty[];
  /** from the logic, in order */
  messages: Message[];
  /** inputs that the world refused */
  refused: RefusedInput[];
  /** own movement, when it has changed */
  own: OwnMove | null;
  /** the players around, now and then */
  crowd: Crowd | null;
}

/** From the server: answer to `Ping`. */
export interface Pong {
  type: 'Pong';
  /** the ping's nonce */
  nonce: number;
  /** the server's clock since its start */
  serverMs: number;
  /** the last tick of the player's region */
  tick: number;
}

/** From the server: a message was refused; the session stays. */
export interface Refused {
  type: 'Refused';
  /** why, see Errors */
  code: number;
  /** the input's number, if readable */
  seq: number | null;
  /** what was wrong, and what would be right */
  detail: string;
}

/** From the server: answer to `Leave`. */
export interface Left {
  type: 'Left';
  /** the first tick in which no client is shown the player */
  tick: number;
}

/** From the server: last message of a session that the server closes. */
export interface Closing {
  type: 'Closing';
  /** why, see Close codes */
  code: number;
  /** for people */
  detail: string;
}

/** From the server: every half minute while in the world. */
export interface Renewed {
  type: 'Renewed';
  /** the newest ticket, for the next `Resume` */
  ticket: Ticket;
}

/** From the server: a machine of the server has died. */
export interface Unconfirmed {
  type: 'Unconfirmed';
  /** the first of these inputs */
  first: number;
  /** the last one */
  last: number;
}

/** From the server: answer to `AskLines`. */
export interface Lines {
  type: 'Lines';
  /** the scene's name */
  scene: string;
  /** number of its lines: planes from 0 on */
  total: number;
  /** players of a line above which nobody is sent there unasked */
  capacity: number;
  /** the open lines, and those with players; at most 256 */
  lines: Line[];
}

/** A message to the server. */
export type ClientMessage = Hello | Join | Move | Teleport | Act | Ping | Leave | Walk | Resume | Face | Set | AskLines;

/** A message from the server. */
export type ServerMessage = Welcome | Joined | Frame | Pong | Refused | Left | Closing | Renewed | Unconfirmed | Lines;
