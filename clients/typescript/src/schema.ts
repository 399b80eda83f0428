// Names and types of the kinds and properties of a configuration, as `purview check --schema` writes them.

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

/** Every kind has a property 0, the appearance, also where the schema does not name it. */
const APPEARANCE: PropertySchema = { name: 'appearance', id: 0, type: 'any', audience: 'viewers', writer: 'owner' };

/** Finds names and numbers of the present scene. Without a schema, a property is called by its number. */
export class Names {
  private readonly scene: SceneSchema | null;

  constructor(schema: Schema | null, scene: string) {
    this.scene = schema?.scenes.find((s) => s.name === scene) ?? null;
  }

  /** The name of a kind. */
  kind(kind: number): string {
    return this.scene?.kinds[kind]?.name ?? (kind === 0 ? 'player' : String(kind));
  }

  /** The property of a kind with this number. */
  property(kind: number, id: number): string {
    const found = this.scene?.kinds[kind]?.properties.find((p) => p.id === id);
    return found?.name ?? (id === 0 ? APPEARANCE.name : String(id));
  }

  /** The player's property with this name or number; `null`: there is none. */
  own(name: string): PropertySchema | null {
    const found = this.scene?.kinds[0]?.properties.find((p) => p.name === name || String(p.id) === name);
    if (found) return found;
    if (name === APPEARANCE.name) return APPEARANCE;
    const id = Number(name);
    return Number.isInteger(id) && id >= 0 && id < 64 ? { ...APPEARANCE, name, id } : null;
  }
}

interface Types {
  bool: boolean;
  int: number | bigint;
  float: number | bigint;
  text: string;
  bytes: Uint8Array;
  list: Value[];
  map: { [key: string]: Value };
  any: Value;
}

type SceneOf<S extends Schema, Scene> = Extract<S['scenes'][number], { readonly name: Scene }>;
type KindOf<S extends Schema, Scene, Kind> = Extract<SceneOf<S, Scene>['kinds'][number], { readonly name: Kind }>;

/**
 * The properties of a kind by name, from a schema that `purview check --schema ts` wrote:
 * `entity.as<PropertiesOf<typeof schema, 'keep', 'player'>>().hp`. Nil is no value.
 */
export type PropertiesOf<S extends Schema, Scene extends string, Kind extends string> = {
  [P in KindOf<S, Scene, Kind>['properties'][number] as P['name']]?: Types[P['type']] | null;
};
