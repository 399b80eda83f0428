// Names and types of the kinds and properties of a configuration, as `purview check --schema` writes them.
/** Every kind has a property 0, the appearance, also where the schema does not name it. */
const APPEARANCE = { name: 'appearance', id: 0, type: 'any', audience: 'viewers', writer: 'owner' };
/** Finds names and numbers of the present scene. Without a schema, a property is called by its number. */
export class Names {
    scene;
    constructor(schema, scene) {
        this.scene = schema?.scenes.find((s) => s.name === scene) ?? null;
    }
    /** The name of a kind. */
    kind(kind) {
        return this.scene?.kinds[kind]?.name ?? (kind === 0 ? 'player' : String(kind));
    }
    /** The property of a kind with this number. */
    property(kind, id) {
        const found = this.scene?.kinds[kind]?.properties.find((p) => p.id === id);
        return found?.name ?? (id === 0 ? APPEARANCE.name : String(id));
    }
    /** The player's property with this name or number; `null`: there is none. */
    own(name) {
        const found = this.scene?.kinds[0]?.properties.find((p) => p.name === name || String(p.id) === name);
        if (found)
            return found;
        if (name === APPEARANCE.name)
            return APPEARANCE;
        const id = Number(name);
        return Number.isInteger(id) && id >= 0 && id < 64 ? { ...APPEARANCE, name, id } : null;
    }
}
