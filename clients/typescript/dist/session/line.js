// One connection: messages out, messages and its end in.
import { ClosedError, ConnectionError, DecodeError, ProtocolError, PurviewError } from '../errors.js';
import { decode, encode } from '../wire/codec.js';
export class Line {
    channel = null;
    closing = null;
    failure = null;
    handler = null;
    waiting = [];
    ended = null;
    /** Bytes of messages that came. */
    bytes = 0;
    /** Resolves when the connection is open. */
    opened;
    /** Begins to connect. */
    constructor(transport, address) {
        this.opened = new Promise((resolve, reject) => {
            this.ended = reject;
            this.channel = transport(address, {
                opened: resolve,
                message: (bytes) => this.message(bytes),
                closed: (code, detail) => {
                    const known = this.failure ?? this.closing;
                    this.end(known ?? (code === null ? new ConnectionError(detail) : new ClosedError(code, detail)));
                },
            });
        });
    }
    message(bytes) {
        if (this.failure)
            return;
        this.bytes += bytes.length;
        let message;
        try {
            message = decode(bytes);
        }
        catch (error) {
            this.fail(error instanceof PurviewError ? error : new DecodeError('malformed', String(error)));
            return;
        }
        if (!message)
            return;
        if (message.type === 'Closing') {
            this.closing = new ClosedError(message.code, message.detail);
            return this.end(this.closing);
        }
        if (this.handler)
            this.handler(message);
        else
            this.waiting.push(message);
    }
    /** The server broke the protocol: the connection ends. */
    fail(why) {
        this.end(why);
        this.close();
    }
    end(why) {
        if (this.failure)
            return;
        this.failure = why;
        this.ended?.(why);
    }
    /** Calls `message` for each message, also for those that came meanwhile, and `ended` once at the end. */
    handle(message, ended) {
        this.ended = ended;
        this.handler = message;
        const early = this.waiting.splice(0);
        for (const one of early)
            if (this.handler === message)
                message(one);
        if (this.failure)
            ended(this.failure);
    }
    /** The first message of one of these types. Others wait for `handle`. */
    first(...types) {
        return new Promise((resolve, reject) => {
            if (this.failure)
                return reject(this.failure);
            const later = [];
            this.ended = reject;
            this.handler = (message) => {
                if (!types.includes(message.type)) {
                    later.push(message);
                    if (later.length > 1_000)
                        this.fail(new ProtocolError(`want ${types.join(' or ')}, got ${message.type}`));
                    return;
                }
                this.handler = null;
                this.waiting = later;
                resolve(message);
            };
            const early = this.waiting.splice(0);
            early.forEach((message) => (this.handler ? this.handler(message) : this.waiting.push(message)));
        });
    }
    send(message) {
        if (!this.failure)
            this.channel?.send(encode(message));
    }
    close() {
        this.handler = null;
        this.channel?.close();
    }
}
