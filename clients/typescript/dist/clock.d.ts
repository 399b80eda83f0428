/** Of the last sixteen pings the one with the smallest error bound counts. */
export declare class ClockEstimate {
    private readonly samples;
    private next;
    /** The ping left at `sent`, the answer came at `received` and said `server`. */
    pong(sent: number, received: number, server: number): void;
    private best;
    /** Error bound at `now`, microseconds. */
    private error;
    /** The server's time; `null` before the first pong. */
    server(now: number): number | null;
    /** Error bound of the server's time, milliseconds. */
    errorMs(now: number): number | null;
    /** The time that a message takes one way, milliseconds. */
    delayMs(now: number): number | null;
}
/** Milliseconds since some moment; never goes back. */
export type Now = () => number;
/** The clock of the browser or of Node. */
export declare function systemClock(): Now;
