import { PurviewError } from '../errors.js';
import type { Transport } from '../transport/transport.js';
import type { ClientMessage, ServerMessage } from '../wire/messages.js';
type Handler = (message: ServerMessage) => void;
export declare class Line {
    private channel;
    private closing;
    private failure;
    private handler;
    private waiting;
    private ended;
    /** Bytes of messages that came. */
    bytes: number;
    /** Resolves when the connection is open. */
    readonly opened: Promise<void>;
    /** Begins to connect. */
    constructor(transport: Transport, address: string);
    private message;
    /** The server broke the protocol: the connection ends. */
    fail(why: PurviewError): void;
    private end;
    /** Calls `message` for each message, also for those that came meanwhile, and `ended` once at the end. */
    handle(message: Handler, ended: (why: PurviewError) => void): void;
    /** The first message of one of these types. Others wait for `handle`. */
    first<T extends ServerMessage['type']>(...types: T[]): Promise<Extract<ServerMessage, {
        type: T;
    }>>;
    send(message: ClientMessage): void;
    close(): void;
}
export {};
