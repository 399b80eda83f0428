import type { CloseName, ErrorName } from './wire/messages.js';
/** Any error of this package. `kind` says which. */
export declare class PurviewError extends Error {
    readonly kind: string;
    constructor(kind: string, message: string, options?: {
        cause?: unknown;
    });
}
/** What is wrong with bytes from the server. */
export type DecodeFault = 'malformed' | 'unknown_type' | 'bad_field' | 'too_big';
/** Bytes are no message, or a value is not MessagePack. */
export declare class DecodeError extends PurviewError {
    readonly fault: DecodeFault;
    constructor(fault: DecodeFault, message: string);
}
/** A value that cannot be sent: too long, out of range, or of the wrong type. */
export declare class ValueError extends PurviewError {
    constructor(message: string);
}
/** The name of an error code. An unknown code counts as `busy`. */
export declare function errorName(code: number): ErrorName;
/** The name of a close code. An unknown code counts as `normal`. */
export declare function closeName(code: number): CloseName;
/** The server refused a request or an input. Nothing was changed, and the session goes on. */
export declare class RefusedError extends PurviewError {
    readonly code: number;
    readonly detail: string;
    /** The reason by its name. */
    readonly reason: ErrorName;
    constructor(code: number, detail: string, what: string);
}
/** The session is over. */
export declare class ClosedError extends PurviewError {
    readonly code: number | null;
    readonly detail: string;
    /** The reason by its name; `null` if the connection ended without one. */
    readonly reason: CloseName | null;
    constructor(code: number | null, detail: string);
}
/** The network failed, or no address could be reached. */
export declare class ConnectionError extends PurviewError {
    constructor(message: string, options?: {
        cause?: unknown;
    });
}
/** The server broke the protocol: a message came that is not legal now. */
export declare class ProtocolError extends PurviewError {
    constructor(message: string);
}
/** A frame contradicts those before it. The view is as it was before the frame. */
export declare class ViewError extends PurviewError {
    constructor(message: string);
}
/** Too many inputs wait for an acknowledgement. This input was not accepted: try again later. */
export declare class BehindError extends PurviewError {
    readonly waiting: number;
    constructor(waiting: number);
}
/** The input was not applied: its player is gone, or has left. */
export declare class LostError extends PurviewError {
    constructor(message: string);
}
