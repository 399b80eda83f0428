// The client's clock, and its estimate of the server's from pings.
const SAMPLES = 16;
/** Assumed drift between the two clocks, parts per million. */
const DRIFT_PPM = 200;
/** Of the last sixteen pings the one with the smallest error bound counts. */
export class ClockEstimate {
    samples = [];
    next = 0;
    /** The ping left at `sent`, the answer came at `received` and said `server`. */
    pong(sent, received, server) {
        if (received < sent)
            return;
        const round = received - sent;
        this.samples[this.next] = { at: sent + Math.floor(round / 2), server, half: round * 500 };
        this.next = (this.next + 1) % SAMPLES;
    }
    best(now) {
        let best = null;
        for (const sample of this.samples) {
            if (!best || this.error(sample, now) < this.error(best, now))
                best = sample;
        }
        return best;
    }
    /** Error bound at `now`, microseconds. */
    error(sample, now) {
        return sample.half + Math.floor((Math.max(0, now - sample.at) * DRIFT_PPM) / 1_000);
    }
    /** The server's time; `null` before the first pong. */
    server(now) {
        const best = this.best(now);
        return best && Math.max(0, best.server + now - best.at);
    }
    /** Error bound of the server's time, milliseconds. */
    errorMs(now) {
        const best = this.best(now);
        return best && Math.ceil(this.error(best, now) / 1_000);
    }
    /** The time that a message takes one way, milliseconds. */
    delayMs(now) {
        const best = this.best(now);
        return best && Math.floor(best.half / 1_000);
    }
}
/** The clock of the browser or of Node. */
export function systemClock() {
    const start = performance.now();
    return () => Math.floor(performance.now() - start);
}
