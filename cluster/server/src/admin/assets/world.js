// The entities on the map, moving smoothly between polls.

/** A moving entity: its last drawn position, the server's position, and the time to arrive there. */
class Mover {
  constructor(x, z) {
    Object.assign(this, { fromX: x, fromZ: z, toX: x, toZ: z, begin: 0, end: 0 });
  }

  x(now) { return this.fromX + (this.toX - this.fromX) * this.part(now); }
  z(now) { return this.fromZ + (this.toZ - this.fromZ) * this.part(now); }

  part(now) {
    if (now >= this.end) return 1;
    return Math.max(0, (now - this.begin) / (this.end - this.begin));
  }

  /** Moves to a position; at a distance of more than `jump` at once. */
  head(x, z, now, duration, jump) {
    const [fromX, fromZ] = [this.x(now), this.z(now)];
    const far = Math.hypot(x - fromX, z - fromZ) > jump;
    this.fromX = far ? x : fromX;
    this.fromZ = far ? z : fromZ;
    this.toX = x;
    this.toZ = z;
    this.begin = now;
    this.end = far ? now : now + duration;
  }
}

export class World {
  constructor() {
    this.still = false; // reduced motion: no movement between polls
    this.clear();
  }

  clear() {
    this.entities = new Map();
    this.ghosts = new Map();
    this.sighted = [];
    this.ticks = [];
    this.late = [];
    this.polledAt = 0;
    this.interval = 250;
  }

  /** Applies an answer of `/api/entities` received at `now` (milliseconds). */
  apply(answer, now, scene) {
    if (this.polledAt > 0) {
      const gap = Math.min(2000, Math.max(50, now - this.polledAt));
      this.interval += (gap - this.interval) * 0.3;
    }
    this.polledAt = now;
    const duration = this.still ? 0 : this.interval * 1.1;
    // An entity that moved faster than three times the top speed has teleported.
    const jump = Math.max(300, (scene.top_speed_cm_s * 3 * this.interval) / 1000);
    const move = (old, x, z) => {
      const mover = old || new Mover(x, z);
      mover.head(x, z, now, duration, jump);
      return mover;
    };
    const entities = new Map();
    for (const [id, kind, x, , z, region, views] of answer.entities) {
      entities.set(id, Object.assign(move(this.entities.get(id), x, z), { id, kind, region, views }));
    }
    const ghosts = new Map();
    const stacked = new Map();
    for (const [id, kind, x, z, owner, mirror] of answer.ghosts) {
      const key = `${id}:${mirror}`;
      const ring = stacked.get(id) || 0;
      stacked.set(id, ring + 1);
      // A new ghost starts where its entity is drawn, so that the ring does not run ahead.
      const real = entities.get(id);
      const old = this.ghosts.get(key) || (real && new Mover(real.x(now), real.z(now)));
      ghosts.set(key, Object.assign(move(old, x, z), { id, kind, owner, mirror, ring }));
    }
    this.entities = entities;
    this.ghosts = ghosts;
    this.sighted = answer.sighted;
    this.ticks = answer.ticks;
    this.late = answer.late;
  }

  /** Whether any entity is still moving to its position. */
  moving(now) { return !this.still && now < this.polledAt + this.interval * 1.2; }

  players() {
    return [...this.entities.values()].filter((e) => e.kind === 0).sort((a, b) => a.id - b.id);
  }

  /** The entity drawn nearest to a point of the screen, players first, within `reach` pixels. */
  at(sx, sy, camera, now, reach) {
    let best = null;
    let bestScore = Infinity;
    for (const e of this.entities.values()) {
      const d = Math.hypot(camera.sx(e.x(now)) - sx, camera.sz(e.z(now)) - sy);
      const score = e.kind === 0 ? d : d + reach / 2;
      if (d <= reach && score < bestScore) [best, bestScore] = [e, score];
    }
    return best;
  }
}
