import type { Value, ValueType } from './value.js';
export interface PropertySchema {
    readonly name: string;
    readonly id: number;
    readonly type: ValueType;
    readonly audience: 'viewers' | 'owner' | 'bonded' | 'server';
    readonly writer: 'logic' | 'owner';
}
export interface KindSchema {
    readonly name: string;
    readonly properties: readonly PropertySchema[];
}
export interface SceneSchema {
    readonly name: string;
    /** The kinds in the order of their numbers; the first one is the player's. */
    readonly kinds: readonly KindSchema[];
}
/** The scenes of a configuration. */
export interface Schema {
    readonly scenes: readonly SceneSchema[];
}
/** Finds names and numbers of the present scene. Without a schema, a property is called by its number. */
export declare class Names {
    private readonly scene;
    constructor(schema: Schema | null, scene: string);
    /** The name of a kind. */
    kind(kind: number): string;
    /** The property of a kind with this number. */
    property(kind: number, id: number): string;
    /** The player's property with this name or number; `null`: there is none. */
    own(name: string): PropertySchema | null;
}
interface Types {
    bool: boolean;
    int: number | bigint;
    float: number | bigint;
    text: string;
    bytes: Uint8Array;
    list: Value[];
    map: {
        [key: string]: Value;
    };
    any: Value;
}
type SceneOf<S extends Schema, Scene> = Extract<S['scenes'][number], {
    readonly name: Scene;
}>;
type KindOf<S extends Schema, Scene, Kind> = Extract<SceneOf<S, Scene>['kinds'][number], {
    readonly name: Kind;
}>;
/**
 * The properties of a kind by name, from a schema that `purview check --schema ts` wrote:
 * `entity.as<PropertiesOf<typeof schema, 'keep', 'player'>>().hp`. Nil is no value.
 */
export type PropertiesOf<S extends Schema, Scene extends string, Kind extends string> = {
    [P in KindOf<S, Scene, Kind>['properties'][number] as P['name']]?: Types[P['type']] | null;
};
export {};
