// The page's own figures: what it measures of itself over the last second.

export class Figures {
  constructor() {
    this.frames = [];
    this.bytes = [];
    this.error = { max: 0, sum: 0, count: 0 };
    this.latencyMs = null;
    this.delayMs = 0;
    this.entities = 0;
    this.dots = 0;
    this.total = 0;
  }

  /** A picture was drawn at `now`, which took `workMs` to make. */
  frame(now, workMs) {
    this.frames.push([now, workMs]);
    while (this.frames[0][0] < now - 1_000) this.frames.shift();
  }

  received(now, bytes) {
    this.total += bytes;
    this.bytes.push([now, bytes]);
  }

  /** How far an entity is drawn from where the newest message has it, centimetres. */
  drawn(off) {
    this.error.max = Math.max(this.error.max, off);
    this.error.sum += off;
    this.error.count += 1;
  }

  /** The figures of the last second, as plain numbers. */
  read(now) {
    while (this.bytes.length && this.bytes[0][0] < now - 1_000) this.bytes.shift();
    const works = this.frames.map(([, work]) => work).sort((a, b) => a - b);
    const { max, sum, count } = this.error;
    this.error = { max: 0, sum: 0, count: 0 };
    return {
      latencyMs: this.latencyMs,
      delayMs: this.delayMs,
      bytesPerSecond: this.bytes.reduce((all, [, bytes]) => all + bytes, 0),
      entities: this.entities,
      dots: this.dots,
      framesPerSecond: works.length,
      frameMs: works[Math.floor(works.length * 0.5)] ?? 0,
      frameP99Ms: works[Math.floor(works.length * 0.99)] ?? 0,
      errorMeanCm: count ? sum / count : 0,
      errorMaxCm: max,
    };
  }
}

/** The same as text for the panel, by the id of each field. */
export function texts(f) {
  const ms = (n) => n === null ? "not known yet" : `${Math.round(n)} ms`;
  return {
    "f-latency": ms(f.latencyMs),
    "f-delay": ms(f.delayMs),
    "f-bytes": `${(f.bytesPerSecond / 1_000).toFixed(1)} kB/s`,
    "f-entities": f.dots ? `${f.entities} and ${f.dots} dots` : `${f.entities}`,
    "f-frame": `${f.frameMs.toFixed(1)} ms, ${f.framesPerSecond}/s`,
    "f-error": `${f.errorMeanCm.toFixed(1)} cm, most ${Math.round(f.errorMaxCm)} cm`,
  };
}
