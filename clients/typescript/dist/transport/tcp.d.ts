import { type ConnectionOptions } from 'node:tls';
import type { Transport } from './transport.js';
/** Splits a stream into messages. */
export declare class Framer {
    private rest;
    /** The messages that these bytes complete; `null`: a length is 0 or above the limit. */
    push(bytes: Uint8Array): Uint8Array[] | null;
}
/** Messages by TCP. `options` are those of `tls.connect`, such as `ca`. */
export declare function tcp(options?: ConnectionOptions): Transport;
