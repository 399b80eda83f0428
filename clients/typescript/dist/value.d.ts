/** A value of a property. An integer beyond 2^53 is a `bigint`; nil stands for no value. */
export type Value = null | boolean | number | bigint | string | Uint8Array | Value[] | {
    [key: string]: Value;
};
/** The type of a property in the configuration. */
export type ValueType = 'bool' | 'int' | 'float' | 'text' | 'bytes' | 'list' | 'map' | 'any';
/**
 * Reads a value.
 *
 * @throws DecodeError The bytes are no value.
 */
export declare function readValue(bytes: Uint8Array): Value;
/**
 * Writes a value. A property of type `float` gets a float, also where the number is whole.
 *
 * @throws ValueError The value is too long, too deep, or has no MessagePack form.
 */
export declare function writeValue(value: Value, type?: ValueType): Uint8Array;
