import { RefusedError, type PurviewError } from '../errors.js';
import type { Command } from '../movement/predictor.js';
import type { ClientMessage, Refused } from '../wire/messages.js';
/** An input of the player. */
export interface Input {
    /** For messages to people: `Act`, `Walk`, ... */
    readonly what: string;
    /** The message with this number. */
    readonly message: (seq: number) => ClientMessage;
    /** The move command that it carries. */
    readonly command?: Command;
    seq: number;
    readonly applied: () => void;
    readonly failed: (why: PurviewError) => void;
}
/** Most inputs that wait; servers accept a few more. */
export declare const MAX_WAITING = 240;
export declare class Outbox {
    private waiting;
    private last;
    /** The first input that the present connection has not carried. */
    private unsent;
    /** Refusals to come: of inputs that were under way behind a refused one. */
    private void;
    get size(): number;
    /** The inputs that wait, in order. */
    get inputs(): readonly Input[];
    /** Whether an input waits that the present connection has not carried. */
    get isBehind(): boolean;
    add(input: Input): void;
    /** The next message to send, if any. */
    next(): ClientMessage | null;
    /** All inputs up to this number are applied; gives them. */
    acknowledged(ack: number): Input[];
    /** A new connection carries all inputs after this one (again), with their numbers. */
    resumed(ack: number): void;
    /** A new player: every input is lost. */
    restart(why: PurviewError): void;
    /** The session has refused an input; gives it, if it is not one that is sent again. */
    refused(refused: Refused): {
        input: Input;
        error: RefusedError;
    } | null;
}
