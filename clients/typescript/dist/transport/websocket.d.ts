import type { Transport } from './transport.js';
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
/** Messages by WebSocket; `ws://host:port/` or `wss://host:port/`. */
export declare function webSocket(given?: WebSocketClass): Transport;
