import type { ClientMessage, ServerMessage } from './messages.js';
/**
 * Reads a message from the server. `null`: a message of a type that only a later version knows.
 *
 * @throws DecodeError The bytes are no message.
 */
export declare function decode(bytes: Uint8Array): ServerMessage | null;
/** The bytes of a message to the server. */
export declare function encode(m: ClientMessage): Uint8Array;
