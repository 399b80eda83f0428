import { ClockEstimate } from '../clock.js';
import { PurviewError, RefusedError } from '../errors.js';
import { Emitter } from '../events.js';
import type { Position } from '../movement/integers.js';
import { type Value } from '../value.js';
import { View, type Entity } from '../view.js';
import { Walker } from '../walker.js';
import type { Frame, Joined, Lines, Welcome } from '../wire/messages.js';
import { type Options } from './options.js';
/** How the player came into its scene. */
export type Arrival = 'joined' | 'resumed' | 'teleported';
/** An action of this player, as it was sent. */
export interface Action {
    readonly payload: Uint8Array;
    readonly aim: number | null;
}
export type PlayerEvents = {
    /** The player is in a scene. */
    joined: [joined: Joined, arrival: Arrival];
    /** A frame was applied; `now` is the client's time of its arrival. */
    frame: [frame: Frame, now: number];
    /** An action of an entity in view. */
    act: [entity: Entity, payload: Uint8Array, byLogic: boolean];
    /** A message of the game's logic. */
    message: [payload: Uint8Array, to: 'player' | 'bond' | 'all'];
    /** An input or request was refused. The call that sent it rejects, too. */
    refused: [error: RefusedError];
    /** A machine of the server died: others may not have been told of these actions. */
    unconfirmed: [actions: Action[]];
    /** The connection broke, and the player tries to resume. */
    reconnecting: [why: PurviewError];
    /** The player has no connection any more and gets none. */
    closed: [why: PurviewError];
};
export declare class Player extends Emitter<PlayerEvents> {
    private readonly options;
    private readonly of;
    private readonly time;
    /** What the player sees. */
    readonly view: View;
    /** The player's own movement; `null` where positions are trusted. */
    walker: Walker | null;
    /** Where the player is and by which rules: the newest `Joined`. */
    place: Joined;
    /** The server's clock, from pings. */
    readonly clock: ClockEstimate;
    private line;
    private readonly outbox;
    private readonly acted;
    private ticket;
    private ack;
    private at;
    private sentAt;
    private pingedAt;
    private pings;
    private budget;
    private over;
    private leaving;
    private trusted;
    private applied;
    private timer;
    private constructor();
    /**
     * Connects and joins.
     *
     * @throws RefusedError The server refuses the join.
     * @throws ClosedError The server ended the session: a wrong token, another version, ...
     * @throws ConnectionError No address could be reached in time.
     */
    static join(options: Options): Promise<Player>;
    /** The lines of `options.scene` with their players, to choose one before a join. Throws as `join` does. */
    static lines(options: Options): Promise<Lines>;
    /** The client's time, milliseconds. */
    now(): number;
    /** The server's time: by pings, or of the last frame before the first pong. */
    serverNow(): number;
    /** The server's limits. */
    welcome: Welcome;
    /** The player's entity. */
    get id(): number;
    get isConnected(): boolean;
    /** Inputs that wait for an acknowledgement. */
    get waiting(): number;
    /** The own position, equal to the server's unless a correction is on its way. */
    position(): Position;
    /** The own position to draw. */
    shown(): Position;
    private mover;
    /** Walks towards (`dx`, `dz`) until the next wish, at most as fast as the player may. */
    walk(dx: number, dz: number, speed?: number): void;
    /** Walks straight to a place and stands there. */
    walkTo(goal: {
        x: number;
        z: number;
    }, speed?: number): void;
    /** Walks tile by tile: digits 0 to 7. */
    steps(steps: string, speed?: number): void;
    /** Spends a speed that the game granted for a time, straight on. Gives false if there is none. */
    dash(dx: number, dz: number): boolean;
    /** Stands still. */
    stop(): void;
    /** The position, in a scene that trusts positions. Resolves when the server has applied it. */
    moveTo(pos: Position): Promise<void>;
    /** Acts: every client that sees the player is told once. `aim`: the player that it is against. */
    act(payload: Uint8Array, aim?: number | null): Promise<void>;
    /** Turns the player: 65,536 steps make a turn, 0 is east, clockwise from above. */
    face(facing: number): Promise<void>;
    /** Sets a property that the player's client may set, by its name. */
    set(name: string, value: Value): Promise<void>;
    /** Teleports, where the scene lets clients do that. The event `joined` tells of the arrival. */
    teleport(to: {
        scene?: string;
        plane?: number;
        pos: Position;
    }): Promise<void>;
    /** Leaves the scene and ends the session. Resolves when the server has stored the player. */
    leave(): Promise<void>;
    /** Ends the connection without leaving: the player stays for its grace period. */
    close(): void;
    private finish;
    private input;
    /** Sends the inputs that this connection has not carried. */
    private pump;
    private say;
    /** Sends move commands and pings that are due. A game may call it in each drawn frame. */
    update(): void;
    private command;
    private ping;
    /** The player is in its scene on a new connection. */
    private arrive;
    private enterPlace;
    private handle;
    private frame;
    /** Inputs up to `ack` are applied, but for those that the world refused. */
    private settle;
    private fail;
    private refused;
    private unconfirmed;
    /** A connection ended: the player resumes on another one, or is over. */
    private ended;
    private resume;
    /** The old player is gone: nothing of it counts any more. */
    private startAnew;
}
