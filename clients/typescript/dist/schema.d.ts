import type { ValueType } from './value.js';
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
