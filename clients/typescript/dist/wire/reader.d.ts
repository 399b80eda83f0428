import { DecodeError } from '../errors.js';
export declare class Reader {
    private readonly all;
    private at;
    private readonly view;
    private type;
    constructor(all: Uint8Array);
    /** Begins a message and gives its type. */
    message(): number;
    /** The message must end here. */
    end(): void;
    /** Passes over a message of a type that only a later version knows. */
    unknown(type: number): null;
    /** An error at the value that was read last. */
    bad(want: string): DecodeError;
    private cut;
    /** The position of so many next bytes. */
    private take;
    private byte;
    /** The number of elements of the array that begins here. Each takes at least one byte. */
    private count;
    /** The number of elements of the next array, which is not read yet. */
    peek(): number;
    /** Begins a record of at least so many fields; gives how many more there are. */
    open(fields: number): number;
    /** What is left of `have` fields after so many. */
    need(have: number, fields: number): number;
    /** Passes over fields that a later version has added. */
    skip(fields: number): void;
    /** Passes over one value; of an array only over its head, and gives its count. */
    private pass;
    private length;
    list<T>(one: (r: Reader) => T, want?: number): T[];
    /** Whether the next value is nil, which is then read. */
    nil(): boolean;
    bool(): boolean;
    private int;
    private within;
    u8(): number;
    /** A sum of 1, 2 and 4. */
    sum7(): number;
    u16(): number;
    u32(): number;
    u64(): number;
    i32(): number;
    text(): string;
    /** The steps of a path. */
    steps(): string;
    /** A copy of the bytes. */
    bytes(): Uint8Array;
}
