// Which cells of a map's static content to have loaded around a position.
//
// A cell is loaded when the player comes as near as one radius and unloaded beyond a greater one, so
// that no cell is loaded and unloaded again by a player who walks along a border.
/** The greatest radius and map side, centimetres: products stay below 2^53. */
const CM_MAX = 50_000_000;
/** The sides and radii are unusable. */
export class CellsError extends RangeError {
    name = 'CellsError';
}
function check(rules) {
    const { width, depth, cell, enter, leave } = rules;
    for (const side of [width, depth, cell]) {
        if (!Number.isInteger(side) || side < 1 || side > CM_MAX) {
            throw new CellsError(`a side of ${side} cm is not usable: 1 to ${CM_MAX} cm`);
        }
    }
    const whole = Number.isInteger(enter) && Number.isInteger(leave);
    if (!whole || enter < 0 || leave <= enter || leave > CM_MAX) {
        throw new CellsError(`radii of ${enter} and ${leave} cm: want 0 <= enter < leave <= ${CM_MAX} cm`);
    }
}
function byPlace(a, b) {
    return a.column - b.column || a.row - b.row;
}
/** The loaded cells around one position. */
export class Cells {
    rules;
    loadedCells = new Map();
    constructor(rules) {
        this.rules = rules;
        check(rules);
    }
    /** The player is at (`x`, `z`): what changes. */
    update(at) {
        const { enter, leave } = this.rules;
        const unload = this.loaded().filter((cell) => this.distance2(cell, at) > leave * leave);
        const found = [];
        const [columns, rows] = [this.along(at.x, this.rules.width), this.along(at.z, this.rules.depth)];
        for (let column = columns.from; column <= columns.to; column++) {
            for (let row = rows.from; row <= rows.to; row++) {
                const cell = { column, row };
                const d = this.distance2(cell, at);
                if (d <= enter * enter && !this.loadedCells.has(`${column},${row}`))
                    found.push({ cell, d });
            }
        }
        found.sort((a, b) => a.d - b.d || byPlace(a.cell, b.cell));
        const load = found.map(({ cell }) => cell);
        for (const { column, row } of unload)
            this.loadedCells.delete(`${column},${row}`);
        for (const cell of load)
            this.loadedCells.set(`${cell.column},${cell.row}`, cell);
        return { load, unload };
    }
    /** The loaded cells, by column and row. */
    loaded() {
        return [...this.loadedCells.values()].sort(byPlace);
    }
    /** The columns, or rows, that a circle around a coordinate reaches. */
    along(at, side) {
        const { cell, enter } = this.rules;
        const last = Math.floor((side - 1) / cell);
        const [from, to] = [Math.floor((at - enter) / cell), Math.floor((at + enter) / cell)];
        return { from: Math.max(from, 0), to: Math.min(to, last) };
    }
    /** The square of the distance to the nearest point of a cell. */
    distance2(cell, at) {
        const off = (n, coordinate, side) => {
            const low = n * this.rules.cell;
            const high = Math.min(low + this.rules.cell, side) - 1;
            return Math.max(low - coordinate, coordinate - high, 0);
        };
        const x = off(cell.column, at.x, this.rules.width);
        const z = off(cell.row, at.z, this.rules.depth);
        return x * x + z * z;
    }
}
