export declare const U32_MAX = 4294967295;
/** `a * b / c`, rounded towards zero. */
export declare function mulDiv(a: number, b: number, c: number): number;
/** A number within 32 bits. */
export declare function i32(n: number): number;
/** The square root of a sum of squares times `scale`, rounded down. */
export declare function rootOf(a: number, b: number, scale: number): number;
/** The length of a vector, rounded up. */
export declare function ceilLength(a: number, b: number): number;
/** The square of the distance on the ground and in height. */
export declare function dist2(a: Position, b: Position): number;
/** Centimetres: `x` to the east, `y` up, `z` to the south. */
export interface Position {
    x: number;
    y: number;
    z: number;
}
