// Reads the MessagePack subset of messages from the server. It never reads beyond the bytes, never
// allocates by a length that it was told, and every fault is a DecodeError.
import { DecodeError } from '../errors.js';
import { MAX_SERVER_FRAME } from './messages.js';
/** Deepest nesting of arrays in a message's fields. */
const MAX_DEPTH = 8;
const utf8 = new TextDecoder('utf-8', { fatal: true });
export class Reader {
    all;
    at = 0;
    view;
    type = 0;
    constructor(all) {
        this.all = all;
        if (all.length > MAX_SERVER_FRAME) {
            throw new DecodeError('too_big', `a message of ${all.length} bytes; at most ${MAX_SERVER_FRAME} are allowed`);
        }
        this.view = new DataView(all.buffer, all.byteOffset, all.byteLength);
    }
    /** Begins a message and gives its type. */
    message() {
        if (this.all.length < 2 || this.all[0] !== 0x92 || this.all[1] >= 0x80) {
            throw new DecodeError('malformed', 'not a message: want a MessagePack array [type, [field, ...]]');
        }
        this.type = this.all[1];
        this.at = 2;
        const marker = this.all[2] ?? 0;
        if (!((marker & 0xf0) === 0x90 || marker === 0xdc || marker === 0xdd)) {
            throw new DecodeError('malformed', 'the second element is not an array of fields');
        }
        return this.type;
    }
    /** The message must end here. */
    end() {
        const left = this.all.length - this.at;
        if (left > 0)
            throw new DecodeError('malformed', `${left} bytes follow the message`);
    }
    /** Passes over a message of a type that only a later version knows. */
    unknown(type) {
        if (type < 64)
            throw new DecodeError('unknown_type', `no server sends messages of type ${type}`);
        this.skip(1);
        return null;
    }
    /** An error at the value that was read last. */
    bad(want) {
        return new DecodeError('bad_field', `message type ${this.type}, byte ${this.at}: want ${want}`);
    }
    cut() {
        return new DecodeError('malformed', `message type ${this.type} ends at byte ${this.all.length} inside a value`);
    }
    /** The position of so many next bytes. */
    take(count) {
        const from = this.at;
        if (count > this.all.length - from)
            throw this.cut();
        this.at = from + count;
        return from;
    }
    byte() {
        return this.all[this.take(1)];
    }
    /** The number of elements of the array that begins here. Each takes at least one byte. */
    count() {
        const marker = this.byte();
        let count;
        if ((marker & 0xf0) === 0x90)
            count = marker & 0x0f;
        else if (marker === 0xdc)
            count = this.view.getUint16(this.take(2));
        else if (marker === 0xdd)
            count = this.view.getUint32(this.take(4));
        else
            throw this.bad('an array');
        if (count > this.all.length - this.at)
            throw this.cut();
        return count;
    }
    /** The number of elements of the next array, which is not read yet. */
    peek() {
        const at = this.at;
        const count = this.count();
        this.at = at;
        return count;
    }
    /** Begins a record of at least so many fields; gives how many more there are. */
    open(fields) {
        return this.need(this.count(), fields);
    }
    /** What is left of `have` fields after so many. */
    need(have, fields) {
        if (have < fields)
            throw this.bad(`an array of ${fields} fields`);
        return have - fields;
    }
    /** Passes over fields that a later version has added. */
    skip(fields) {
        if (fields === 0)
            return;
        const open = [fields];
        while (open.length > 0) {
            const last = open.length - 1;
            if (open[last] === 0) {
                open.pop();
                continue;
            }
            open[last] -= 1;
            const inner = this.pass();
            if (inner > 0 && open.push(inner) > MAX_DEPTH) {
                throw new DecodeError('malformed', `byte ${this.at}: nested deeper than ${MAX_DEPTH}`);
            }
        }
    }
    /** Passes over one value; of an array only over its head, and gives its count. */
    pass() {
        const marker = this.byte();
        if (marker < 0x80 || marker >= 0xe0 || marker === 0xc0 || marker === 0xc2 || marker === 0xc3)
            return 0;
        if ((marker & 0xe0) === 0xa0)
            return this.take(marker & 0x1f), 0;
        if ((marker & 0xf0) === 0x90 || marker === 0xdc || marker === 0xdd) {
            this.at -= 1;
            return this.count();
        }
        if (marker >= 0xca && marker <= 0xd3)
            return this.take([4, 8, 1, 2, 4, 8, 1, 2, 4, 8][marker - 0xca]), 0;
        if (marker >= 0xc4 && marker <= 0xc6)
            return this.take(this.length(marker - 0xc4)), 0;
        if (marker >= 0xd9 && marker <= 0xdb)
            return this.take(this.length(marker - 0xd9)), 0;
        throw this.bad('a value of the envelope');
    }
    length(width) {
        if (width === 0)
            return this.byte();
        return width === 1 ? this.view.getUint16(this.take(2)) : this.view.getUint32(this.take(4));
    }
    list(one, want) {
        const count = this.count();
        if (want !== undefined && count < want)
            throw this.bad(`a list of ${want}`);
        const all = [];
        for (let i = 0; i < count; i++)
            all.push(one(this));
        return all;
    }
    /** Whether the next value is nil, which is then read. */
    nil() {
        if (this.all[this.at] !== 0xc0)
            return false;
        this.at += 1;
        return true;
    }
    bool() {
        const marker = this.byte();
        if (marker !== 0xc2 && marker !== 0xc3)
            throw this.bad('true or false');
        return marker === 0xc3;
    }
    int() {
        const marker = this.byte();
        if (marker < 0x80)
            return marker;
        if (marker >= 0xe0)
            return marker - 0x100;
        switch (marker) {
            case 0xcc:
                return this.byte();
            case 0xcd:
                return this.view.getUint16(this.take(2));
            case 0xce:
                return this.view.getUint32(this.take(4));
            case 0xcf:
                return Number(this.view.getBigUint64(this.take(8)));
            case 0xd0:
                return this.view.getInt8(this.take(1));
            case 0xd1:
                return this.view.getInt16(this.take(2));
            case 0xd2:
                return this.view.getInt32(this.take(4));
            case 0xd3:
                return Number(this.view.getBigInt64(this.take(8)));
            default:
                throw this.bad('an integer');
        }
    }
    within(low, high) {
        const n = this.int();
        if (n < low || n > high)
            throw this.bad(`an integer of ${low} to ${high}`);
        return n;
    }
    u8() {
        return this.within(0, 0xff);
    }
    /** A sum of 1, 2 and 4. */
    sum7() {
        return this.within(0, 7);
    }
    u16() {
        return this.within(0, 0xffff);
    }
    u32() {
        return this.within(0, 0xffffffff);
    }
    u64() {
        return this.within(0, Number.MAX_SAFE_INTEGER);
    }
    i32() {
        return this.within(-0x80000000, 0x7fffffff);
    }
    text() {
        const marker = this.byte();
        let length;
        if ((marker & 0xe0) === 0xa0)
            length = marker & 0x1f;
        else if (marker >= 0xd9 && marker <= 0xdb)
            length = this.length(marker - 0xd9);
        else
            throw this.bad('a text');
        const from = this.take(length);
        try {
            return utf8.decode(this.all.subarray(from, from + length));
        }
        catch {
            throw this.bad('a text in UTF-8');
        }
    }
    /** The steps of a path. */
    steps() {
        const steps = this.text();
        if (!/^[0-7]{0,64}$/.test(steps))
            throw this.bad('at most 64 digits 0 to 7');
        return steps;
    }
    /** A copy of the bytes. */
    bytes() {
        const marker = this.byte();
        if (marker < 0xc4 || marker > 0xc6)
            throw this.bad('bytes');
        const length = this.length(marker - 0xc4);
        const from = this.take(length);
        return this.all.slice(from, from + length);
    }
}
