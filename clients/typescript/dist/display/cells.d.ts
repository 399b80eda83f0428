/** A square of the map: from the west and from the north, 0 first. */
export interface Cell {
    readonly column: number;
    readonly row: number;
}
/** What to load, the nearest first, and what to unload, by column and row. */
export interface CellChange {
    readonly load: Cell[];
    readonly unload: Cell[];
}
/** Sides and radii of `Cells`, centimetres. */
export interface CellRules {
    readonly width: number;
    readonly depth: number;
    readonly cell: number;
    readonly enter: number;
    readonly leave: number;
}
/** The sides and radii are unusable. */
export declare class CellsError extends RangeError {
    readonly name = "CellsError";
}
/** The loaded cells around one position. */
export declare class Cells {
    private readonly rules;
    private readonly loadedCells;
    constructor(rules: CellRules);
    /** The player is at (`x`, `z`): what changes. */
    update(at: {
        readonly x: number;
        readonly z: number;
    }): CellChange;
    /** The loaded cells, by column and row. */
    loaded(): Cell[];
    /** The columns, or rows, that a circle around a coordinate reaches. */
    private along;
    /** The square of the distance to the nearest point of a cell. */
    private distance2;
}
