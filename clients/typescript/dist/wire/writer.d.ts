export declare class Writer {
    private bytesOut;
    private at;
    /** The message. */
    done(): Uint8Array;
    private room;
    private put;
    private append;
    /** A marker, then a number in so many bytes. */
    private wide;
    message(type: number, fields: number): void;
    array(count: number): void;
    list<T>(all: readonly T[], one: (v: T) => void): void;
    nil(): void;
    bool(on: boolean): void;
    private int;
    u8(n: number): void;
    sum7(n: number): void;
    u16(n: number): void;
    u32(n: number): void;
    u64(n: number): void;
    i32(n: number): void;
    text(text: string): void;
    steps(steps: string): void;
    bytes(bytes: Uint8Array): void;
}
