// WebSocket: browsers, Node 22 and later, or any implementation that is given.

import type { Channel, ChannelEvents, Transport } from './transport.js';

/** What this package needs of a WebSocket. The browser's and that of the package `ws` fit. */
export interface WebSocketLike {
  binaryType: string;
  readonly readyState: number;
  send(data: Uint8Array): void;
  close(code?: number): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

export type WebSocketClass = new (address: string) => WebSocketLike;

const OPEN = 1;

/** Messages by WebSocket; `ws://host:port/` or `wss://host:port/`. */
export function webSocket(given?: WebSocketClass): Transport {
  return (address: string, events: ChannelEvents): Channel => {
    const Class = given ?? (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
    if (!Class) return failed(events, 'there is no WebSocket here: pass one, or use the TCP transport');
    let socket: WebSocketLike;
    try {
      socket = new Class(address);
    } catch (error) {
      return failed(events, `${address}: ${String(error)}`);
    }
    return connected(socket, address, events);
  };
}

function failed(events: ChannelEvents, detail: string): Channel {
  queueMicrotask(() => events.closed(null, detail));
  return { send() {}, close() {} };
}

function connected(socket: WebSocketLike, address: string, events: ChannelEvents): Channel {
  let over = false;
  let why = '';
  const end = (code: number | null, detail: string) => {
    if (over) return;
    over = true;
    events.closed(code, detail);
  };
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => {
    if (!over) events.opened();
  };
  socket.onmessage = (event: { data: unknown }) => {
    if (over) return;
    if (event.data instanceof ArrayBuffer) events.message(new Uint8Array(event.data));
    else {
      end(null, 'a text came where only binary messages may come');
      socket.close();
    }
  };
  socket.onerror = (event: { message?: string }) => {
    why ||= event.message ?? 'the connection failed';
  };
  socket.onclose = (event: { code: number; reason: string }) => {
    // 1005 and 1006: no close frame came.
    const code = event.code === 1005 || event.code === 1006 ? null : event.code;
    end(code, event.reason || why || (code === null ? `${address}: the connection ended` : ''));
  };
  return {
    send: (message) => {
      if (!over && socket.readyState === OPEN) socket.send(message);
    },
    close: () => {
      socket.close();
      end(null, 'closed by the client');
    },
  };
}
