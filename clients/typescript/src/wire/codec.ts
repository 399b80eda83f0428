// Written by a test from proto/client/messages.toml: see there. Do not edit.

import type {
  Acted,
  Blocker,
  ChangedProperty,
  ClientMessage,
  Closing,
  Crowd,
  Entered,
  EnteredProperty,
  EntityTrajectory,
  FirstProperty,
  Form,
  Frame,
  Going,
  Grant,
  JoinRules,
  Joined,
  Left,
  Line,
  Lines,
  Message,
  MoveRules,
  Moved,
  NextTrajectory,
  OwnMove,
  Pong,
  Position,
  Refused,
  RefusedInput,
  Renewed,
  ServerMessage,
  Ticket,
  TrajectoryUpdate,
  Turned,
  Unconfirmed,
  UpdateRules,
  Visibility,
  Welcome,
} from './messages.js';
import { Reader } from './reader.js';
import { Writer } from './writer.js';

function readLine(r: Reader): Line {
  const more = r.open(3);
  const m: Line = { plane: r.i32(), players: r.u32(), open: r.bool() };
  r.skip(more);
  return m;
}

function readPosition(r: Reader): Position {
  const more = r.open(3);
  const m: Position = { x: r.i32(), y: r.i32(), z: r.i32() };
  r.skip(more);
  return m;
}

function readTicket(r: Reader): Ticket {
  const more = r.open(2);
  const m: Ticket = { token: r.text(), gracePeriodMs: r.u32() };
  r.skip(more);
  return m;
}

function readJoinRules(r: Reader): JoinRules {
  const more = r.open(12);
  const m: JoinRules = { visibility: readVisibility(r), range: r.sum7(), sight: r.sum7(), patchCm: r.list(() => r.i32(), 2), patchMarginCm: r.i32(), heightCm: r.nil() ? null : r.i32(), viewCap: r.u32(), viewMarginCm: r.i32(), rates: r.list(() => r.u32(), 3), sizeCm: r.list(() => r.i32(), 2), movement: r.nil() ? null : readMoveRules(r), updates: r.nil() ? null : readUpdateRules(r) };
  r.skip(more);
  return m;
}

function readMoveRules(r: Reader): MoveRules {
  const more = r.open(8);
  const m: MoveRules = { tickMs: r.u32(), tileCm: r.i32(), topSpeed: r.u32(), commandMs: r.u32(), graceMs: r.u32(), leashMs: r.u32(), climb: r.nil() ? null : r.list(() => r.i32(), 2), blocks: r.list(readBlocker) };
  r.skip(more);
  return m;
}

function readBlocker(r: Reader): Blocker {
  const more = r.open(2);
  const m: Blocker = { kind: r.u8(), sizeCm: r.list(() => r.i32(), 2) };
  r.skip(more);
  return m;
}

function readUpdateRules(r: Reader): UpdateRules {
  const more = r.open(3);
  const m: UpdateRules = { tickMs: r.u32(), errorMinCm: r.i32(), errorShare: r.u32() };
  r.skip(more);
  return m;
}

function readOwnMove(r: Reader): OwnMove {
  const more = r.open(5);
  const m: OwnMove = { correction: r.u32(), trajectory: readGoing(r), speed: r.u32(), flags: r.u8(), grants: r.list(readGrant) };
  r.skip(more);
  return m;
}

function readGrant(r: Reader): Grant {
  const more = r.open(3);
  const m: Grant = { id: r.u32(), speed: r.u32(), leftMs: r.nil() ? null : r.u32() };
  r.skip(more);
  return m;
}

function readGoing(r: Reader): Going {
  const more = r.open(3);
  const m: Going = { startMs: r.u64(), lastsMs: r.nil() ? null : r.u32(), form: readForm(r) };
  r.skip(more);
  return m;
}

function readEntered(r: Reader): Entered {
  const more = r.open(8);
  const m: Entered = { id: r.u64(), kind: r.u8(), x: r.i32(), y: r.i32(), z: r.i32(), facing: r.u16(), properties: r.list(readEnteredProperty), trajectory: r.nil() ? null : readGoing(r) };
  r.skip(more);
  return m;
}

function readMoved(r: Reader): Moved {
  const more = r.open(7);
  const m: Moved = { id: r.u64(), x: r.i32(), y: r.i32(), z: r.i32(), vx: r.i32(), vz: r.i32(), facing: r.u16() };
  r.skip(more);
  return m;
}

function readEntityTrajectory(r: Reader): EntityTrajectory {
  const more = r.open(3);
  const m: EntityTrajectory = { id: r.u64(), trajectory: readGoing(r), facing: r.u16() };
  r.skip(more);
  return m;
}

function readNextTrajectory(r: Reader): NextTrajectory {
  const more = r.open(9);
  const m: NextTrajectory = { id: r.u64(), agoMs: r.u32(), dx: r.i32(), dy: r.i32(), dz: r.i32(), vx: r.i32(), vz: r.i32(), lastsMs: r.nil() ? null : r.u32(), facing: r.u16() };
  r.skip(more);
  return m;
}

function readTurned(r: Reader): Turned {
  const more = r.open(2);
  const m: Turned = { id: r.u64(), facing: r.u16() };
  r.skip(more);
  return m;
}

function readCrowd(r: Reader): Crowd {
  const more = r.open(3);
  const m: Crowd = { x: r.i32(), z: r.i32(), dots: r.bytes() };
  r.skip(more);
  return m;
}

function readActed(r: Reader): Acted {
  const more = r.open(3);
  const m: Acted = { id: r.u64(), payload: r.bytes(), logic: r.bool() };
  r.skip(more);
  return m;
}

function readEnteredProperty(r: Reader): EnteredProperty {
  const more = r.open(3);
  const m: EnteredProperty = { id: r.u8(), version: r.u32(), value: r.bytes() };
  r.skip(more);
  return m;
}

function readChangedProperty(r: Reader): ChangedProperty {
  const more = r.open(4);
  const m: ChangedProperty = { entity: r.u64(), id: r.u8(), version: r.u32(), value: r.bytes() };
  r.skip(more);
  return m;
}

function readMessage(r: Reader): Message {
  const more = r.open(2);
  const m: Message = { kind: r.u8(), payload: r.bytes() };
  r.skip(more);
  return m;
}

function readRefusedInput(r: Reader): RefusedInput {
  const more = r.open(2);
  const m: RefusedInput = { seq: r.u32(), code: r.u16() };
  r.skip(more);
  return m;
}

function readVisibility(r: Reader): Visibility {
  let more = r.open(1);
  let m: Visibility;
  switch (r.u8()) {
    case 0:
      more = r.need(more, 0);
      m = { kind: 'patches' };
      break;
    case 1:
      more = r.need(more, 2);
      m = { kind: 'circle', enter: r.i32(), leave: r.i32() };
      break;
    case 2:
      more = r.need(more, 0);
      m = { kind: 'all' };
      break;
    default:
      throw r.bad('a known Visibility');
  }
  r.skip(more);
  return m;
}

function readForm(r: Reader): Form {
  let more = r.open(1);
  let m: Form;
  switch (r.u8()) {
    case 0:
      more = r.need(more, 3);
      m = { kind: 'path', start: readPosition(r), steps: r.steps(), speed: r.u32() };
      break;
    case 1:
      more = r.need(more, 4);
      m = { kind: 'vector', start: readPosition(r), vx: r.i32(), vz: r.i32(), lasts: r.nil() ? null : r.u32() };
      break;
    default:
      throw r.bad('a known Form');
  }
  r.skip(more);
  return m;
}

function readTrajectoryUpdate(r: Reader): TrajectoryUpdate {
  if (r.peek() >= 9) return { kind: 'next', ...readNextTrajectory(r) };
  return { kind: 'whole', ...readEntityTrajectory(r) };
}

function readWelcome(r: Reader): Welcome {
  const more = r.open(7);
  const m: Welcome = { type: 'Welcome', version: r.u16(), session: r.u64(), tickMs: r.u32(), serverMs: r.u64(), rateLimit: r.u32(), maxFrame: r.u32(), heartbeatMs: r.u32() };
  r.skip(more);
  return m;
}

function readJoined(r: Reader): Joined {
  const more = r.open(10);
  const m: Joined = { type: 'Joined', id: r.u64(), scene: r.text(), plane: r.i32(), pos: readPosition(r), facing: r.u16(), tick: r.u64(), rules: readJoinRules(r), own: r.nil() ? null : readOwnMove(r), ack: r.u32(), ticket: r.nil() ? null : readTicket(r) };
  r.skip(more);
  return m;
}

function readFrame(r: Reader): Frame {
  const more = r.open(15);
  const m: Frame = { type: 'Frame', tick: r.u64(), ack: r.u32(), epoch: r.u64(), resync: r.bool(), enters: r.list(readEntered), leaves: r.list(() => r.u64()), moves: r.list(readMoved), trajectories: r.list(readTrajectoryUpdate), turns: r.list(readTurned), acts: r.list(readActed), properties: r.list(readChangedProperty), messages: r.list(readMessage), refused: r.list(readRefusedInput), own: r.nil() ? null : readOwnMove(r), crowd: r.nil() ? null : readCrowd(r) };
  r.skip(more);
  return m;
}

function readPong(r: Reader): Pong {
  const more = r.open(3);
  const m: Pong = { type: 'Pong', nonce: r.u64(), serverMs: r.u64(), tick: r.u64() };
  r.skip(more);
  return m;
}

function readRefused(r: Reader): Refused {
  const more = r.open(3);
  const m: Refused = { type: 'Refused', code: r.u16(), seq: r.nil() ? null : r.u32(), detail: r.text() };
  r.skip(more);
  return m;
}

function readLeft(r: Reader): Left {
  const more = r.open(1);
  const m: Left = { type: 'Left', tick: r.u64() };
  r.skip(more);
  return m;
}

function readClosing(r: Reader): Closing {
  const more = r.open(2);
  const m: Closing = { type: 'Closing', code: r.u16(), detail: r.text() };
  r.skip(more);
  return m;
}

function readRenewed(r: Reader): Renewed {
  const more = r.open(1);
  const m: Renewed = { type: 'Renewed', ticket: readTicket(r) };
  r.skip(more);
  return m;
}

function readUnconfirmed(r: Reader): Unconfirmed {
  const more = r.open(2);
  const m: Unconfirmed = { type: 'Unconfirmed', first: r.u32(), last: r.u32() };
  r.skip(more);
  return m;
}

function readLines(r: Reader): Lines {
  const more = r.open(4);
  const m: Lines = { type: 'Lines', scene: r.text(), total: r.i32(), capacity: r.u32(), lines: r.list(readLine) };
  r.skip(more);
  return m;
}

/**
 * Reads a message from the server. `null`: a message of a type that only a later version knows.
 *
 * @throws DecodeError The bytes are no message.
 */
export function decode(bytes: Uint8Array): ServerMessage | null {
  const r = new Reader(bytes);
  const m = body(r, r.message());
  r.end();
  return m;
}

function body(r: Reader, type: number): ServerMessage | null {
  switch (type) {
    case 64:
      return readWelcome(r);
    case 65:
      return readJoined(r);
    case 66:
      return readFrame(r);
    case 67:
      return readPong(r);
    case 68:
      return readRefused(r);
    case 69:
      return readLeft(r);
    case 70:
      return readClosing(r);
    case 71:
      return readRenewed(r);
    case 72:
      return readUnconfirmed(r);
    case 73:
      return readLines(r);
    default:
      return r.unknown(type);
  }
}

function writePosition(w: Writer, m: Position): void {
  w.array(3);
  w.i32(m.x);
  w.i32(m.y);
  w.i32(m.z);
}

function writeFirstProperty(w: Writer, m: FirstProperty): void {
  w.array(2);
  w.u8(m.id);
  w.bytes(m.value);
}

function writeForm(w: Writer, m: Form): void {
  if (m.kind === 'path') {
    w.array(4);
    w.u8(0);
    writePosition(w, m.start);
    w.steps(m.steps);
    w.u32(m.speed);
  }
  if (m.kind === 'vector') {
    w.array(5);
    w.u8(1);
    writePosition(w, m.start);
    w.i32(m.vx);
    w.i32(m.vz);
    m.lasts === null ? w.nil() : w.u32(m.lasts);
  }
}

/** The bytes of a message to the server. */
export function encode(m: ClientMessage): Uint8Array {
  const w = new Writer();
  switch (m.type) {
    case 'Hello':
      w.message(1, 3);
      w.u16(m.version);
      w.text(m.token);
      w.bool(m.crowd);
      break;
    case 'Join':
      w.message(2, 6);
      w.text(m.scene);
      m.plane === null ? w.nil() : w.i32(m.plane);
      m.pos === null ? w.nil() : writePosition(w, m.pos);
      m.sight === null ? w.nil() : w.sum7(m.sight);
      w.list(m.properties, (v) => writeFirstProperty(w, v));
      w.u16(m.viewCap);
      break;
    case 'Move':
      w.message(3, 2);
      w.u32(m.seq);
      writePosition(w, m.pos);
      break;
    case 'Teleport':
      w.message(4, 4);
      w.u32(m.seq);
      m.scene === null ? w.nil() : w.text(m.scene);
      m.plane === null ? w.nil() : w.i32(m.plane);
      writePosition(w, m.pos);
      break;
    case 'Act':
      w.message(5, 3);
      w.u32(m.seq);
      w.bytes(m.payload);
      m.aim === null ? w.nil() : w.u64(m.aim);
      break;
    case 'Ping':
      w.message(6, 1);
      w.u64(m.nonce);
      break;
    case 'Leave':
      w.message(7, 0);
      break;
    case 'Walk':
      w.message(8, 4);
      w.u32(m.seq);
      w.u32(m.correction);
      w.u64(m.atMs);
      m.form === null ? w.nil() : writeForm(w, m.form);
      break;
    case 'Resume':
      w.message(9, 2);
      w.text(m.token);
      w.u32(m.ack);
      break;
    case 'Face':
      w.message(10, 2);
      w.u32(m.seq);
      w.u16(m.facing);
      break;
    case 'Set':
      w.message(11, 3);
      w.u32(m.seq);
      w.u8(m.property);
      w.bytes(m.value);
      break;
    case 'AskLines':
      w.message(12, 1);
      w.text(m.scene);
      break;
  }
  return w.done();
}
