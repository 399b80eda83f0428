/**
 * How the display time has come to its new value. `ran`: as time does. `jumped`: while pictures were
 * drawn, so that the difference is spread. `began`: no picture was drawn for a while, or ever.
 */
export type Advance = 'ran' | 'jumped' | 'began';
/** Chooses the server time to draw. */
export declare class DisplayClock {
    private meanUs;
    private deviationUs;
    private newestUs;
    private heardUs;
    private picture;
    /** A pong has arrived at `nowUs` of the client's clock. */
    pong(nowUs: number): void;
    /**
     * A frame has arrived, when the server's time was `serverUs` by estimate. It tells what has begun
     * in the `tickUs` microseconds before the time `toldUs` of its tick.
     */
    frame(nowUs: number, serverUs: number, toldUs: number, tickUs: number): void;
    /**
     * How far the picture should be behind the server's time: the mean lateness of frames and two and
     * a half times its deviation, 50 to 500 ms.
     */
    delayUs(): number;
    /**
     * Moves on to the picture that is drawn at `nowUs` of the client's clock, when the server's time is
     * `serverUs` by estimate.
     */
    advance(nowUs: number, serverUs: number): Advance;
    /** The server time of the last picture, microseconds; 0 before the first. */
    get timeUs(): number;
    /** The same in whole milliseconds, as trajectories take it. */
    get timeMs(): number;
}
