import { PurviewError } from '../errors.js';
import type { Join, Joined, Lines, Welcome } from '../wire/messages.js';
import { Line } from './line.js';
import type { Settings } from './options.js';
/** A connection on which the player is in its scene. */
export interface Entry {
    line: Line;
    welcome: Welcome;
    joined: Joined;
    /** Whether it is the same player as before. */
    isResumed: boolean;
    /** Index of the address. */
    at: number;
}
/** What to ask for. */
export interface Wanted {
    join: Join;
    crowd: boolean;
    /** The newest ticket and the last acknowledged input; `null`: join. */
    resume: {
        token: string;
        ack: number;
    } | null;
}
/** Whether the server keeps the player after a connection ended like this. */
export declare function staysAfter(why: PurviewError): boolean;
/** Tries until one address lets the player in. `isOver` ends it. */
export declare function enter(of: Settings, wanted: Wanted, from: number, isOver: () => boolean): Promise<Entry>;
/** Asks for the lines of a scene, over a connection of its own. */
export declare function askLines(of: Settings, scene: string): Promise<Lines>;
