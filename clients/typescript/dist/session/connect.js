// Attempts to join or to resume, at one address after another, with growing pauses.
import { ClosedError, ConnectionError, DecodeError, PurviewError, RefusedError } from '../errors.js';
import { PROTOCOL_VERSION } from '../wire/messages.js';
import { Line } from './line.js';
/** Close codes after which another attempt may succeed. */
const AGAIN = new Set([null, 1001, 4003, 4004, 4006, 4007, 4008, 4010]);
/** Whether the server keeps the player after a connection ended like this. */
export function staysAfter(why) {
    if (why instanceof ClosedError)
        return AGAIN.has(why.code) && why.code !== 4003;
    return why instanceof ConnectionError;
}
function isFinal(why) {
    if (why instanceof ClosedError)
        return !AGAIN.has(why.code);
    if (why instanceof RefusedError)
        return why.reason !== 'busy' && why.reason !== 'taken';
    return why instanceof DecodeError || !(why instanceof ConnectionError);
}
/** Tries until one address lets the player in. `isOver` ends it. */
export async function enter(of, wanted, from, isOver) {
    // Spreads the attempts of clients that lost the same gateway.
    if (wanted.resume)
        await sleep(of.random() * of.retry.first);
    return reach(of, (line, at) => attempt(of, wanted, line, at), from, isOver);
}
/** Asks for the lines of a scene, over a connection of its own. */
export function askLines(of, scene) {
    const ask = async (line) => {
        await greet(of, line, false);
        line.send({ type: 'AskLines', scene });
        const answer = await line.first('Lines', 'Refused');
        if (answer.type === 'Refused')
            throw new RefusedError(answer.code, answer.detail, 'the question');
        line.close();
        return answer;
    };
    return reach(of, ask, 0, () => false);
}
async function reach(of, attempt, from, isOver) {
    const { retry, addresses } = of;
    const until = performance.now() + retry.patience;
    let pause = retry.first;
    for (let tried = 0;; tried++) {
        const at = (from + tried) % addresses.length;
        try {
            return await limited(of, attempt, at, isOver);
        }
        catch (error) {
            const why = error instanceof PurviewError ? error : new ConnectionError(String(error), { cause: error });
            // Every address is tried once without a pause.
            const late = performance.now() >= until;
            if (isFinal(why) || late || isOver())
                throw why;
        }
        if ((tried + 1) % addresses.length !== 0)
            continue;
        await sleep(pause + of.random() * pause);
        if (isOver())
            throw new ConnectionError('the player was closed while it connected');
        pause = Math.min(2 * pause, retry.most);
    }
}
function sleep(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
}
async function limited(of, attempt, at, isOver) {
    const address = of.addresses[at];
    const line = new Line(of.transport, address);
    let timer;
    const late = new Promise((_, reject) => {
        const why = new ConnectionError(`${address}: no answer in ${of.retry.attempt} ms`);
        timer = setTimeout(() => reject(why), of.retry.attempt);
    });
    try {
        const entered = line.opened.then(() => attempt(line, at));
        const entry = await Promise.race([entered, late]);
        if (isOver())
            throw new ConnectionError('the player was closed while it connected');
        return entry;
    }
    catch (error) {
        line.close();
        throw error;
    }
    finally {
        clearTimeout(timer);
    }
}
async function greet(of, line, crowd) {
    const token = await of.token();
    line.send({ type: 'Hello', version: PROTOCOL_VERSION, token, crowd });
    const welcome = await line.first('Welcome', 'Refused');
    if (welcome.type === 'Refused')
        throw new RefusedError(welcome.code, welcome.detail, 'the hello');
    return welcome;
}
async function attempt(of, wanted, line, at) {
    const welcome = await greet(of, line, wanted.crowd);
    if (wanted.resume) {
        line.send({ type: 'Resume', ...wanted.resume });
        const answer = await line.first('Joined', 'Refused');
        if (answer.type === 'Joined')
            return { line, welcome, joined: answer, isResumed: true, at };
        const refused = new RefusedError(answer.code, answer.detail, 'the resume');
        const isGone = refused.reason === 'gone' || refused.reason === 'bad_ticket';
        if (!isGone || !of.rejoin)
            throw refused;
    }
    line.send(wanted.join);
    const answer = await line.first('Joined', 'Refused');
    if (answer.type === 'Refused')
        throw new RefusedError(answer.code, answer.detail, 'the join');
    return { line, welcome, joined: answer, isResumed: false, at };
}
