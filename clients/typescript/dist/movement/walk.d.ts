import { type Footing } from './ground.js';
import { type Position } from './integers.js';
import { type Move } from './move.js';
export declare class Walk {
    readonly motion: Move;
    /** How long it goes on after the last command. */
    private readonly reachMs;
    /** When it began, by the client's clock; `null` for a move that the server ordered. */
    since: number | null;
    /** From the start to the client's last command about it. */
    private saidMs;
    /** Where the way is blocked, from the start; `null`: nowhere so far. */
    private blockedMs;
    private constructor();
    /** A client's move that begins at `at`; `null`: the path cannot be walked. */
    static begin(motion: Move, at: number, on: Footing): Walk | null;
    /** Standing, by order of the server. */
    static stand(at: Position): Walk;
    /** Standing since a moment of the client's clock. */
    static stood(at: Position, since: number): Walk;
    /** A move ordered by the server, for so long. */
    static ordered(motion: Move, lastsMs: number): Walk;
    get isClients(): boolean;
    /** Milliseconds walked when `ms` have passed since the start. */
    walked(ms: number): number;
    private get lapsesMs();
    /** Milliseconds from the start to a client time. A move that the server ordered counts as over. */
    passed(at: number): number;
    at(at: number): Position;
    /** Whether it is over `ms` after the start, whatever the client sends. */
    isOver(ms: number): boolean;
    /** Whether it has ended before its own end, because no command was sent. */
    hasLapsed(ms: number): boolean;
    /** When it ended for good, if that was before `at` and no command was sent since. */
    unsaidEnd(at: number): number | null;
    /** Whether something in the way ends it before its own end. */
    get isBlocked(): boolean;
    /** The client goes on at `at`. A walk that has lapsed stays ended. */
    goOn(at: number, on: Footing): Walk;
    /** Looks how far the way is clear from `fromMs` on. */
    private look;
    /** Milliseconds from the start to the end, as far as known. */
    get lastsMs(): number;
}
