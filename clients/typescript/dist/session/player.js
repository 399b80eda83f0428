// A player in a scene, over one connection after another.
//
//   connecting --Joined--> in the world --the connection breaks--> connecting (Resume)
//   in the world --leave, or a close that is final--> over
import { ClockEstimate, systemClock } from '../clock.js';
import { BehindError, ClosedError, LostError, PurviewError, RefusedError, ValueError } from '../errors.js';
import { Emitter } from '../events.js';
import { Names } from '../schema.js';
import { writeValue } from '../value.js';
import { View } from '../view.js';
import { Walker } from '../walker.js';
import { MAX_ACT } from '../wire/messages.js';
import { askLines, enter, staysAfter } from './connect.js';
import { settings } from './options.js';
import { MAX_WAITING, Outbox } from './outbox.js';
const MESSAGE_TO = ['player', 'bond', 'all'];
/** Applied actions that are remembered for `unconfirmed`. */
const REMEMBERED = 256;
const PING_MS = 5_000;
/** Pings at the beginning, for an estimate of the server's clock. */
const FIRST_PINGS = 4;
export class Player extends Emitter {
    options;
    of;
    time;
    /** What the player sees. */
    view;
    /** The player's own movement; `null` where positions are trusted. */
    walker = null;
    /** Where the player is and by which rules: the newest `Joined`. */
    place;
    /** The server's clock, from pings. */
    clock = new ClockEstimate();
    line = null;
    outbox = new Outbox();
    acted = [];
    ticket = null;
    ack = 0;
    at = 0;
    sentAt = 0;
    pingedAt = -Infinity;
    pings = 0;
    budget = Infinity;
    over = null;
    leaving = null;
    trusted;
    applied;
    timer;
    constructor(options, of, entry, time) {
        super();
        this.options = options;
        this.of = of;
        this.time = time;
        this.view = new View(entry.joined, options.schema ?? null);
        this.view.on('act', (...act) => this.emit('act', ...act));
        this.place = entry.joined;
        this.trusted = this.applied = entry.joined.pos;
        this.arrive(entry, 'joined');
        const every = options.updateMs ?? 50;
        if (every > 0)
            this.timer = setInterval(() => this.update(), every);
    }
    /**
     * Connects and joins.
     *
     * @throws RefusedError The server refuses the join.
     * @throws ClosedError The server ended the session: a wrong token, another version, ...
     * @throws ConnectionError No address could be reached in time.
     */
    static async join(options) {
        const of = settings(options);
        const wanted = { join: joinOf(options), crowd: options.crowd ?? false, resume: null };
        const entry = await enter(of, wanted, 0, () => false);
        return new Player(options, of, entry, options.now ?? systemClock());
    }
    /** The lines of `options.scene` with their players, to choose one before a join. Throws as `join` does. */
    static async lines(options) {
        return askLines(settings(options), options.scene);
    }
    /** The client's time, milliseconds. */
    now() {
        return this.time();
    }
    /** The server's time: by pings, or of the last frame before the first pong. */
    serverNow() {
        return this.clock.server(this.time()) ?? this.view.timeOf(this.view.tick);
    }
    /** The server's limits. */
    welcome;
    /** The player's entity. */
    get id() {
        return this.place.id;
    }
    get isConnected() {
        return this.line !== null;
    }
    /** Inputs that wait for an acknowledgement. */
    get waiting() {
        return this.outbox.size;
    }
    /** The own position, equal to the server's unless a correction is on its way. */
    position() {
        return this.walker ? this.walker.position(this.time()) : this.trusted;
    }
    /** The own position to draw. */
    shown() {
        return this.walker ? this.walker.shown(this.time()) : this.trusted;
    }
    mover() {
        if (this.walker)
            return this.walker;
        throw new ValueError('this scene trusts positions: call moveTo');
    }
    /** Walks towards (`dx`, `dz`) until the next wish, at most as fast as the player may. */
    walk(dx, dz, speed) {
        this.mover().walk(dx, dz, speed);
        this.update();
    }
    /** Walks straight to a place and stands there. */
    walkTo(goal, speed) {
        this.mover().walkTo(this.time(), goal, speed);
        this.update();
    }
    /** Walks tile by tile: digits 0 to 7. */
    steps(steps, speed) {
        this.mover().steps(steps, speed);
        this.update();
    }
    /** Spends a speed that the game granted for a time, straight on. Gives false if there is none. */
    dash(dx, dz) {
        const isGranted = this.mover().dash(dx, dz);
        this.update();
        return isGranted;
    }
    /** Stands still. */
    stop() {
        this.walker?.stop();
        this.update();
    }
    /** The position, in a scene that trusts positions. Resolves when the server has applied it. */
    moveTo(pos) {
        if (this.walker)
            return rejected(new ValueError('this scene judges moves: call walk'));
        this.trusted = pos;
        const moved = this.input('the move', (seq) => ({ type: 'Move', seq, pos }));
        const settle = (isApplied) => {
            if (isApplied)
                this.applied = pos;
            else if (this.trusted === pos)
                this.trusted = this.applied;
        };
        moved.then(() => settle(true), () => settle(false));
        return moved;
    }
    /** Acts: every client that sees the player is told once. `aim`: the player that it is against. */
    act(payload, aim = null) {
        if (payload.length > MAX_ACT) {
            return rejected(new ValueError(`an action of ${payload.length} bytes; at most ${MAX_ACT} are allowed`));
        }
        const action = { payload, aim };
        let last = 0;
        const acted = this.input('the action', (seq) => {
            last = seq;
            return { type: 'Act', seq, payload, aim };
        });
        const remember = () => {
            this.acted.push({ seq: last, action });
            if (this.acted.length > REMEMBERED)
                this.acted.shift();
        };
        acted.then(remember, () => { });
        return acted;
    }
    /** Turns the player: 65,536 steps make a turn, 0 is east, clockwise from above. */
    face(facing) {
        const turned = ((Math.round(facing) % 65_536) + 65_536) % 65_536;
        this.view.me.facing = turned;
        return this.input('the turn', (seq) => ({ type: 'Face', seq, facing: turned }));
    }
    /** Sets a property that the player's client may set, by its name. */
    set(name, value) {
        const property = new Names(this.options.schema ?? null, this.place.scene).own(name);
        if (!property)
            return rejected(new ValueError(`the player has no property ${JSON.stringify(name)}`));
        let bytes;
        try {
            bytes = writeValue(value, property.type);
        }
        catch (error) {
            return rejected(error);
        }
        return this.input(`the property ${name}`, (seq) => ({ type: 'Set', seq, property: property.id, value: bytes }));
    }
    /** Teleports, where the scene lets clients do that. The event `joined` tells of the arrival. */
    teleport(to) {
        const { scene = null, plane = null, pos } = to;
        return this.input('the teleport', (seq) => ({ type: 'Teleport', seq, scene, plane, pos }));
    }
    /** Leaves the scene and ends the session. Resolves when the server has stored the player. */
    leave() {
        if (this.over)
            return Promise.resolve();
        if (!this.line) {
            this.close();
            return Promise.resolve();
        }
        return new Promise((resolve) => {
            this.leaving = resolve;
            this.line.send({ type: 'Leave' });
        });
    }
    /** Ends the connection without leaving: the player stays for its grace period. */
    close() {
        this.finish(new ClosedError(null, 'closed by the client'));
    }
    finish(why) {
        if (this.over)
            return;
        this.over = why;
        clearInterval(this.timer);
        const { line } = this;
        this.line = null;
        line?.close();
        this.outbox.restart(new LostError(`not applied: ${why.message}`));
        this.leaving?.();
        this.emit('closed', why);
    }
    input(what, message, command) {
        if (this.over)
            return rejected(this.over);
        if (this.outbox.size >= MAX_WAITING)
            return rejected(new BehindError(this.outbox.size));
        const done = new Promise((applied, failed) => {
            const input = { what, message, seq: 0, applied, failed, ...(command && { command }) };
            this.outbox.add(input);
        });
        this.pump();
        // Whoever does not wait for it need not handle the error.
        done.catch(() => { });
        return done;
    }
    /** Sends the inputs that this connection has not carried. */
    pump() {
        while (this.line && this.outbox.isBehind && this.budget >= 1) {
            const message = this.outbox.next();
            if (!message)
                break;
            this.budget -= 1;
            this.say(message);
        }
        if (!this.outbox.isBehind)
            this.budget = Infinity;
    }
    say(message) {
        this.line?.send(message);
        this.sentAt = this.time();
    }
    /** Sends move commands and pings that are due. A game may call it in each drawn frame. */
    update() {
        if (this.over)
            return;
        const now = this.time();
        if (Number.isFinite(this.budget)) {
            // Half of the rate: the player goes on meanwhile.
            this.budget = Math.min(this.budget + this.welcome.rateLimit / 40, this.welcome.rateLimit);
            this.pump();
        }
        while (this.walker && this.outbox.size < MAX_WAITING) {
            const command = this.walker.poll(now);
            if (!command)
                break;
            this.command(command);
        }
        this.ping(now);
    }
    command(command) {
        const { correction, at: atMs, motion } = command;
        const form = motion?.form() ?? null;
        void this.input('the walk', (seq) => ({ type: 'Walk', seq, correction, atMs, form }), command);
    }
    ping(now) {
        const every = this.pings < FIRST_PINGS ? 250 : PING_MS;
        const silent = now - this.sentAt >= this.welcome.heartbeatMs / 3;
        if (!this.line || (now - this.pingedAt < every && !silent))
            return;
        this.pingedAt = now;
        this.pings += 1;
        this.say({ type: 'Ping', nonce: now });
    }
    /** The player is in its scene on a new connection. */
    arrive(entry, arrival) {
        const { line, welcome, joined } = entry;
        this.line = line;
        this.welcome = welcome;
        this.at = entry.at;
        this.pings = 0;
        this.pingedAt = -Infinity;
        // A player that was still there from an earlier login has inputs, too.
        this.outbox.resumed(joined.ack);
        this.settle(joined.ack, new Map());
        this.enterPlace(joined, arrival);
        this.budget = this.outbox.isBehind ? welcome.rateLimit / 2 : Infinity;
        this.pump();
        // Whoever waits for `join` or listens to `joined` hears every event after it.
        setTimeout(() => {
            if (this.line !== line)
                return;
            this.emit('joined', joined, arrival);
            line.handle((message) => this.handle(message), (why) => this.ended(line, why));
        }, 0);
    }
    enterPlace(joined, arrival) {
        const now = this.time();
        const isOther = joined.scene !== this.place.scene || joined.plane !== this.place.plane || joined.id !== this.place.id;
        this.place = joined;
        this.ticket = joined.ticket ?? this.ticket;
        this.view.joined(joined, isOther);
        this.trusted = this.applied = joined.pos;
        const tiles = this.options.tiles?.(joined) ?? null;
        if (arrival === 'joined' || !this.walker?.joined(now, joined, tiles))
            this.walker = Walker.of(now, joined, tiles);
    }
    handle(message) {
        switch (message.type) {
            case 'Frame':
                return this.frame(message);
            case 'Joined':
                this.settle(message.ack, new Map());
                this.enterPlace(message, 'teleported');
                return this.emit('joined', message, 'teleported');
            case 'Pong':
                return this.clock.pong(message.nonce, this.time(), message.serverMs);
            case 'Refused':
                return this.refused(message);
            case 'Renewed':
                this.ticket = message.ticket;
                return;
            case 'Unconfirmed':
                return this.unconfirmed(message);
            case 'Left':
            case 'Lines':
            case 'Welcome':
            case 'Closing':
                return;
        }
    }
    frame(frame) {
        const now = this.time();
        try {
            this.view.apply(frame);
        }
        catch (error) {
            this.line?.fail(error);
            return;
        }
        this.walker?.sees(this.view);
        if (frame.own && this.walker)
            this.walker.take(now, frame.own);
        this.settle(frame.ack, new Map(frame.refused.map((r) => [r.seq, r.code])));
        for (const m of frame.messages)
            this.emit('message', m.payload, to(m));
        this.emit('frame', frame, now);
    }
    /** Inputs up to `ack` are applied, but for those that the world refused. */
    settle(ack, refused) {
        if (ack > this.ack)
            this.ack = ack;
        let last;
        for (const input of this.outbox.acknowledged(ack)) {
            last = input.command ?? last;
            const code = refused.get(input.seq);
            if (code === undefined)
                input.applied();
            else
                this.fail(input, new RefusedError(code, '', input.what));
        }
        if (last)
            this.walker?.acked(this.time(), last);
    }
    fail(input, error) {
        input.failed(error);
        this.emit('refused', error);
    }
    refused(message) {
        if (message.seq === null) {
            this.emit('refused', new RefusedError(message.code, message.detail, 'a message'));
            return;
        }
        const found = this.outbox.refused(message);
        if (!found)
            return;
        if (found.input.command)
            this.walker?.acked(this.time(), found.input.command);
        this.fail(found.input, found.error);
        this.pump();
    }
    unconfirmed(message) {
        const within = this.acted.filter((a) => a.seq >= message.first && a.seq <= message.last);
        this.emit('unconfirmed', within.map((a) => a.action));
    }
    /** A connection ended: the player resumes on another one, or is over. */
    ended(line, why) {
        line.close();
        if (this.line !== line)
            return;
        this.line = null;
        if (this.over)
            return;
        if (this.leaving || !staysAfter(why) || !this.ticket)
            return this.finish(why);
        this.emit('reconnecting', why);
        void this.resume();
    }
    async resume() {
        const join = joinOf(this.options);
        const resume = { token: this.ticket.token, ack: this.ack };
        const wanted = { join, crowd: this.options.crowd ?? false, resume };
        try {
            const entry = await enter(this.of, wanted, this.at + 1, () => this.over !== null);
            if (this.over)
                return entry.line.close();
            if (!entry.isResumed)
                this.startAnew();
            this.arrive(entry, entry.isResumed ? 'resumed' : 'joined');
        }
        catch (error) {
            this.finish(error);
        }
    }
    /** The old player is gone: nothing of it counts any more. */
    startAnew() {
        this.outbox.restart(new LostError('not applied: the player was gone, and joined anew'));
        this.acted.length = 0;
        this.ack = 0;
        this.view.clear();
    }
}
function rejected(why) {
    const promise = Promise.reject(why);
    promise.catch(() => { });
    return promise;
}
function to(message) {
    return MESSAGE_TO[message.kind] ?? 'all';
}
function joinOf(options) {
    const names = new Names(options.schema ?? null, options.scene);
    const properties = Object.entries(options.properties ?? {}).map(([name, value]) => {
        const property = names.own(name);
        if (!property)
            throw new ValueError(`the player has no property ${JSON.stringify(name)}`);
        return { id: property.id, value: writeValue(value, property.type) };
    });
    const { scene, plane = null, pos = null, sight = null, viewCap = 0 } = options;
    return { type: 'Join', scene, plane, pos, sight, properties, viewCap };
}
