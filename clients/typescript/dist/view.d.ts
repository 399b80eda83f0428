import { Emitter } from './events.js';
import type { Position } from './movement/integers.js';
import { Trajectory } from './movement/trajectory.js';
import { type Schema } from './schema.js';
import { type Value } from './value.js';
import type { Frame, Joined } from './wire/messages.js';
/** An entity in view, or the player itself. */
export declare class Entity {
    readonly id: number;
    /** Index into the scene's kinds; 0 is a player. */
    readonly kind: number;
    /** The kind's name in the schema. */
    readonly kindName: string;
    /** The last position that the server sent, centimetres. */
    pos: Position;
    /** The way it faces: 65,536 steps make a turn, 0 is east, clockwise from above. */
    facing: number;
    /** The world in which it came into view, see `View.world`. */
    readonly world: number;
    /** Its properties by name, as far as the server told them. */
    readonly properties: Map<string, Value>;
    /** How it moves since the last message; `null`: it stands at `pos`. */
    trajectory: Trajectory | null;
    constructor(id: number, 
    /** Index into the scene's kinds; 0 is a player. */
    kind: number, 
    /** The kind's name in the schema. */
    kindName: string, 
    /** The last position that the server sent, centimetres. */
    pos: Position, 
    /** The way it faces: 65,536 steps make a turn, 0 is east, clockwise from above. */
    facing: number, 
    /** The world in which it came into view, see `View.world`. */
    world: number);
    /** A property by its name; `undefined`: never told. */
    get(name: string): Value | undefined;
    /** All properties by name, with the types of a schema: see `PropertiesOf`. */
    as<P extends {
        [name: string]: unknown;
    }>(): P;
    /** The position at a time of the server, by the last message. */
    position(serverMs: number): Position;
}
/** Why an entity left: it left the view, or the player is in another world. */
export type LeaveReason = 'view' | 'world';
/** What has changed about an entity. */
export type Change = 'position' | 'trajectory' | 'facing';
export type ViewEvents = {
    enter: [entity: Entity];
    leave: [entity: Entity, why: LeaveReason];
    update: [entity: Entity, change: Change];
    /** `entity` may be the player itself, `view.me`. */
    property: [entity: Entity, name: string, value: Value, before: Value | undefined];
    act: [entity: Entity, payload: Uint8Array, byLogic: boolean];
};
/** The players around as dots, without ids. */
export interface CrowdDots {
    /** The tick whose positions these are. */
    readonly tick: number;
    /** Middles of cells, centimetres. */
    readonly dots: readonly {
        x: number;
        z: number;
    }[];
    /** An eighth of the sides of a patch along x and z, centimetres. */
    readonly cellCm: readonly [number, number];
}
export declare class View extends Emitter<ViewEvents> {
    private readonly schema;
    private readonly seen;
    private names;
    private tileCm;
    private tickMs;
    private patchCm;
    /** The player itself. It is never in its own view. */
    me: Entity;
    /** The tick of the last frame; 0 before the first one. */
    tick: number;
    /** Counts scenes, planes and joins: it grows when the whole world around the player changes. */
    world: number;
    /** The newest crowd; `null`: none was told. */
    crowd: CrowdDots | null;
    constructor(joined: Joined, schema?: Schema | null);
    private self;
    private rules;
    /**
     * The player has joined, resumed or teleported. The frames that follow change the view.
     * `isOther`: it is another world; the entities that leave from now on leave by that.
     */
    joined(joined: Joined, isOther: boolean): void;
    /** A new session begins: everything leaves, and ticks may begin anew. */
    clear(): void;
    get size(): number;
    get(id: number): Entity | undefined;
    has(id: number): boolean;
    [Symbol.iterator](): IterableIterator<Entity>;
    /** The server's time of a tick; 0 where clients do not extrapolate. */
    timeOf(tick: number): number;
    /**
     * Applies a frame, then calls the listeners.
     *
     * @throws ViewError The frame contradicts those before it; the view is then unchanged.
     * @throws DecodeError A property has a value that is not MessagePack.
     */
    apply(frame: Frame): void;
    private entered;
    /** An entity that a resync names again stays, with what is new about it. */
    private enter;
    private move;
    private next;
    private setProperties;
    private put;
    private check;
}
/** The dots but for one near each of these places, which are drawn anyway. */
export declare function beyond(crowd: CrowdDots, known: Iterable<{
    x: number;
    z: number;
}>): {
    x: number;
    z: number;
}[];
