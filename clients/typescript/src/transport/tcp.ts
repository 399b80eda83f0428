// TCP for Node: `tcp://host:port` or, with TLS, `tls://host:port`. A message follows its length, a
// u32 in big-endian order.

import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

import { MAX_SERVER_FRAME } from '../wire/messages.js';
import type { Channel, ChannelEvents, Transport } from './transport.js';

/** Splits a stream into messages. */
export class Framer {
  private rest: Uint8Array = new Uint8Array(0);

  /** The messages that these bytes complete; `null`: a length is 0 or above the limit. */
  push(bytes: Uint8Array): Uint8Array[] | null {
    const all = new Uint8Array(this.rest.length + bytes.length);
    all.set(this.rest);
    all.set(bytes, this.rest.length);
    const view = new DataView(all.buffer);
    const found: Uint8Array[] = [];
    let at = 0;
    while (all.length - at >= 4) {
      const length = view.getUint32(at);
      if (length === 0 || length > MAX_SERVER_FRAME) return null;
      if (all.length - at - 4 < length) break;
      found.push(all.slice(at + 4, at + 4 + length));
      at += 4 + length;
    }
    this.rest = all.subarray(at);
    return found;
  }
}

/** Messages by TCP. `options` are those of `tls.connect`, such as `ca`. */
export function tcp(options: ConnectionOptions = {}): Transport {
  return (address: string, events: ChannelEvents): Channel => {
    let over = false;
    let socket: Socket | null = null;
    const end = (detail: string) => {
      if (over) return;
      over = true;
      socket?.destroy();
      events.closed(null, detail);
    };
    const parsed = /^(tcp|tls):\/\/(\[[^\]]+\]|[^:/]+):(\d{1,5})\/?$/.exec(address);
    if (!parsed || Number(parsed[3]) > 65_535) {
      queueMicrotask(() => end(`${address}: want tcp://host:port or tls://host:port`));
    } else {
      const host = parsed[2]!.replace(/^\[|\]$/g, '');
      const to = { host, port: Number(parsed[3]) };
      const secure = parsed[1] === 'tls';
      socket = secure ? connectTls({ servername: host, ...options, ...to }) : connectTcp(to);
      listen(socket, secure, events, end, () => over);
    }
    return {
      send: (message) => {
        if (over || !socket) return;
        const framed = new Uint8Array(4 + message.length);
        new DataView(framed.buffer).setUint32(0, message.length);
        framed.set(message, 4);
        socket.write(framed);
      },
      close: () => end('closed by the client'),
    };
  };
}

function listen(
  socket: Socket,
  secure: boolean,
  events: ChannelEvents,
  end: (detail: string) => void,
  isOver: () => boolean,
): void {
  const framer = new Framer();
  // One small message per input: waiting to fill a segment only adds delay.
  socket.setNoDelay(true);
  socket.on(secure ? 'secureConnect' : 'connect', () => {
    if (!isOver()) events.opened();
  });
  socket.on('data', (bytes) => {
    const messages = framer.push(bytes);
    if (!messages) return end('a message of a length that no server sends');
    for (const message of messages) if (!isOver()) events.message(message);
  });
  socket.on('error', (error) => end(error.message));
  socket.on('close', () => end('the connection ended'));
}
