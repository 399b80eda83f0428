import type { Now } from '../clock.js';
import type { Tiles } from '../movement/ground.js';
import type { Position } from '../movement/integers.js';
import type { Schema } from '../schema.js';
import type { Transport } from '../transport/transport.js';
import type { Value } from '../value.js';
import type { Joined } from '../wire/messages.js';
/** How connections are tried. Times in milliseconds. */
export interface Retry {
    /** The shortest pause; pauses double up to `most`, and each is spread by chance. */
    readonly first: number;
    readonly most: number;
    /** Limit of one attempt. */
    readonly attempt: number;
    /** After this time without a connection the player gives up. */
    readonly patience: number;
}
export interface Options {
    /** Addresses of gateways, tried in turn. */
    readonly addresses: string | readonly string[];
    /** The login token. A function is called before each attempt to join or to resume. */
    readonly token: string | (() => string | Promise<string>);
    readonly scene: string;
    /** The plane; left out: a line with room. */
    readonly plane?: number;
    /** Where to appear, where the scene lets clients choose. */
    readonly pos?: Position;
    /** Rings in which the player is shown what is not a player: a sum of 1, 2 and 4. */
    readonly sight?: number;
    /** Most players in view, 1 or more, for a weak device; the scene's cap unless that is higher. */
    readonly viewCap?: number;
    /** Properties with which the player begins, by name. */
    readonly properties?: {
        readonly [name: string]: Value;
    };
    /** Whether the client wants the crowd as dots. */
    readonly crowd?: boolean;
    /** Names and types, from `purview check --schema`. */
    readonly schema?: Schema;
    /** The ground of a scene, so that the player stops at walls by itself. */
    readonly tiles?: (joined: Joined) => Tiles | null;
    /** WebSocket by default. */
    readonly transport?: Transport;
    readonly retry?: Partial<Retry>;
    /** Whether the player joins anew when the server has given it up. By default it does. */
    readonly rejoin?: boolean;
    /** How often the player sends commands by itself, milliseconds; 0: the game calls `update`. */
    readonly updateMs?: number;
    /** For tests: a clock and chance. */
    readonly now?: Now;
    readonly random?: () => number;
}
/** Options with their defaults. */
export interface Settings {
    readonly addresses: readonly string[];
    readonly token: () => Promise<string>;
    readonly transport: Transport;
    readonly retry: Retry;
    readonly rejoin: boolean;
    readonly random: () => number;
}
export declare function settings(options: Options): Settings;
