// One connection: messages out, messages and its end in.

import { ClosedError, ConnectionError, DecodeError, ProtocolError, PurviewError } from '../errors.js';
import type { Channel, Transport } from '../transport/transport.js';
import { decode, encode } from '../wire/codec.js';
import type { ClientMessage, ServerMessage } from '../wire/messages.js';

type Handler = (message: ServerMessage) => void;

export class Line {
  private channel: Channel | null = null;
  private closing: ClosedError | null = null;
  private failure: PurviewError | null = null;
  private handler: Handler | null = null;
  private waiting: ServerMessage[] = [];
  private ended: ((why: PurviewError) => void) | null = null;
  /** Bytes of messages that came. */
  bytes = 0;

  /** Resolves when the connection is open. */
  readonly opened: Promise<void>;

  /** Begins to connect. */
  constructor(transport: Transport, address: string) {
    this.opened = new Promise((resolve, reject) => {
      this.ended = reject;
      this.channel = transport(address, {
        opened: resolve,
        message: (bytes) => this.message(bytes),
        closed: (code, detail) => {
          const known = this.failure ?? this.closing;
          this.end(known ?? (code === null ? new ConnectionError(detail) : new ClosedError(code, detail)));
        },
      });
    });
  }

  private message(bytes: Uint8Array): void {
    if (this.failure) return;
    this.bytes += bytes.length;
    let message: ServerMessage | null;
    try {
      message = decode(bytes);
    } catch (error) {
      this.fail(error instanceof PurviewError ? error : new DecodeError('malformed', String(error)));
      return;
    }
    if (!message) return;
    if (message.type === 'Closing') {
      this.closing = new ClosedError(message.code, message.detail);
      return this.end(this.closing);
    }
    if (this.handler) this.handler(message);
    else this.waiting.push(message);
  }

  /** The server broke the protocol: the connection ends. */
  fail(why: PurviewError): void {
    this.end(why);
    this.close();
  }

  private end(why: PurviewError): void {
    if (this.failure) return;
    this.failure = why;
    this.ended?.(why);
  }

  /** Calls `message` for each message, also for those that came meanwhile, and `ended` once at the end. */
  handle(message: Handler, ended: (why: PurviewError) => void): void {
    this.ended = ended;
    this.handler = message;
    const early = this.waiting.splice(0);
    for (const one of early) if (this.handler === message) message(one);
    if (this.failure) ended(this.failure);
  }

  /** The first message of one of these types. Others wait for `handle`. */
  first<T extends ServerMessage['type']>(...types: T[]): Promise<Extract<ServerMessage, { type: T }>> {
    return new Promise((resolve, reject) => {
      if (this.failure) return reject(this.failure);
      const later: ServerMessage[] = [];
      this.ended = reject;
      this.handler = (message) => {
        if (!(types as string[]).includes(message.type)) {
          later.push(message);
          if (later.length > 1_000) this.fail(new ProtocolError(`want ${types.join(' or ')}, got ${message.type}`));
          return;
        }
        this.handler = null;
        this.waiting = later;
        resolve(message as Extract<ServerMessage, { type: T }>);
      };
      const early = this.waiting.splice(0);
      early.forEach((message) => (this.handler ? this.handler(message) : this.waiting.push(message)));
    });
  }

  send(message: ClientMessage): void {
    if (!this.failure) this.channel?.send(encode(message));
  }

  close(): void {
    this.handler = null;
    this.channel?.close();
  }
}
