// Draws the terrain: blocked tiles as pictures from the server, piece by piece, and doors in their current state.

import { get } from "./access.js";

/** Most cached pieces outside the view; each takes up to 4 MB. */
const KEPT = 40;
/** Time before a failed piece is requested again, in milliseconds. */
const AGAIN_MS = 3000;

/** Colours of doors; closed doors are filled, open doors are a frame. */
export const DOOR_LOOKS = { open: "#86efac", closed: "#fb7185" };
/** The colour of blocked tiles in the server's pictures; for the legend. */
export const BLOCKED_COLOUR = "rgba(148,163,184,0.41)";

export class Terrain {
  /** Calls `changed()` when there is more to draw than before. */
  constructor(changed) {
    this.changed = changed;
    this.leave();
  }

  /** Clears everything, as for a scene without a map. */
  leave() {
    this.scene = this.version = this.shape = null;
    this.pieces = new Map();
    this.set = new Map();
    this.frame = 0;
    this.shown = { level: 0, pieces: 0, waiting: 0 };
  }

  /** Shows the terrain of a scene, if it has one; requests each version once. */
  async enter(scene, ask) {
    if (this.scene === scene.name && this.version === scene.terrain) return;
    this.leave();
    [this.scene, this.version] = [scene.name, scene.terrain];
    if (!scene.terrain) return;
    const shape = await ask(`api/terrain?${new URLSearchParams({ scene: scene.name })}`);
    // The page may have switched to another scene meanwhile.
    if (shape && this.scene === shape.scene) {
      this.shape = shape;
      this.changed();
    } else if (this.scene === scene.name) {
      this.version = null;
    }
  }

  /** Applies the doors whose state differs from the map: pairs of a door and whether it is open. */
  apply(doors) {
    this.set = new Map(doors);
  }

  isOpen(door) {
    return this.set.get(door) ?? this.shape.doors[door].open;
  }

  /** The doors with their names and states; for tests and debugging. */
  doors() {
    return this.shape ? this.shape.doors.map((d, i) => ({ name: d.name, open: this.isOpen(i) })) : [];
  }

  /** The name and state of the door at a position in the world; null if there is none. */
  doorAt(x, z) {
    if (!this.shape) return null;
    const [tx, tz] = [Math.floor(x / this.shape.tile_cm), Math.floor(z / this.shape.tile_cm)];
    const here = ([rx, rz, n]) => rz === tz && tx >= rx && tx < rx + n;
    const door = this.shape.doors.findIndex((d) => d.runs.some(here));
    return door < 0 ? null : `${this.shape.doors[door].name} · ${this.isOpen(door) ? "open" : "closed"}`;
  }

  /** Draws the visible part. */
  draw(ctx, camera, density, names) {
    if (!this.shape) return;
    this.drawBlocked(ctx, camera, density);
    this.shape.doors.forEach((door, i) => drawDoor(ctx, camera, this.shape.tile_cm, door, this.isOpen(i), names));
  }

  drawBlocked(ctx, camera, density) {
    const { tile_cm, piece, levels } = this.shape;
    const tile = tile_cm * camera.scale * density;
    // The coarsest level whose pixels are not much larger than those of the screen.
    const level = Math.min(levels - 1, Math.max(0, Math.floor(Math.log2(1.4 / tile))));
    const side = piece * 2 ** level;
    const v = camera.view();
    const first = (cm) => Math.max(0, Math.floor(cm / tile_cm / side));
    const last = (cm, tiles) => Math.min(Math.floor((tiles - 1) / side), Math.floor(cm / tile_cm / side));
    this.shown = { level, pieces: 0, waiting: 0 };
    this.frame += 1;
    for (let z = first(v.z0); z <= last(v.z1, this.shape.depth); z += 1) {
      for (let x = first(v.x0); x <= last(v.x1, this.shape.width); x += 1) {
        this.drawPiece(ctx, camera, density, level, x, z);
      }
    }
    for (const [k, entry] of this.pieces) {
      if (this.pieces.size <= KEPT || entry.frame === this.frame) break;
      this.pieces.delete(k);
    }
  }

  /** Draws a piece, or the same part of a coarser piece while it loads. */
  drawPiece(ctx, camera, density, level, x, z) {
    const { tile_cm, piece, width, depth, levels } = this.shape;
    let found = this.piece(level, x, z);
    if (found) this.shown.pieces += 1;
    else this.shown.waiting += 1;
    let up = 0;
    while (!found && level + up + 1 < levels) {
      up += 1;
      found = this.pieces.get(key(level + up, x >> up, z >> up))?.image;
    }
    if (!found) return;
    const side = piece * 2 ** level;
    const [tx, tz] = [x * side, z * side];
    const [tw, td] = [Math.min(side, width - tx), Math.min(side, depth - tz)];
    // Whole pixels of the screen, so that neighbours neither overlap nor leave a gap.
    const whole = (px) => Math.round(px * density) / density;
    const [left, top] = [whole(camera.sx(tx * tile_cm)), whole(camera.sz(tz * tile_cm))];
    const [right, bottom] = [whole(camera.sx((tx + tw) * tile_cm)), whole(camera.sz((tz + td) * tile_cm))];
    const per = 2 ** (level + up);
    const [ox, oz] = [(tx % (piece * per)) / per, (tz % (piece * per)) / per];
    ctx.imageSmoothingEnabled = tile_cm * per * camera.scale * density < 1;
    ctx.drawImage(found, ox, oz, tw / per, td / per, left, top, right - left, bottom - top);
    ctx.imageSmoothingEnabled = true;
  }

  /** The picture of a piece, requested if necessary; null until it is loaded. */
  piece(level, x, z) {
    const k = key(level, x, z);
    let entry = this.pieces.get(k);
    const now = performance.now();
    if (!entry || (entry.failed && now - entry.failed > AGAIN_MS)) {
      entry = { image: null, failed: 0, frame: 0 };
      this.load(entry, level, x, z);
    }
    // Least recently used pieces come first and are removed first.
    entry.frame = this.frame;
    this.pieces.delete(k);
    this.pieces.set(k, entry);
    return entry.image;
  }

  async load(entry, level, x, z) {
    try {
      const query = new URLSearchParams({ scene: this.scene, level, x, z });
      const answer = await get(`api/terrain.png?${query}`);
      if (!answer.ok) throw new Error(`${answer.status}`);
      const image = await createImageBitmap(await answer.blob());
      // Decoded once into a canvas, from which every frame is drawn quickly.
      const canvas = new OffscreenCanvas(image.width, image.height);
      canvas.getContext("2d").drawImage(image, 0, 0);
      image.close();
      entry.image = canvas;
    } catch {
      // The banner already reports that the server does not answer.
      entry.failed = performance.now();
    }
    this.changed();
  }
}

const key = (level, x, z) => `${level}/${x}/${z}`;

function drawDoor(ctx, camera, tile_cm, door, open, names) {
  const tile = tile_cm * camera.scale;
  ctx.strokeStyle = ctx.fillStyle = open ? DOOR_LOOKS.open : DOOR_LOOKS.closed;
  ctx.lineWidth = 1.5;
  for (const [x, z, n] of door.runs) {
    // A door stays visible at every zoom.
    const [width, depth] = [Math.max(3, n * tile), Math.max(3, tile)];
    const left = camera.sx((x + n / 2) * tile_cm) - width / 2;
    const top = camera.sz((z + 0.5) * tile_cm) - depth / 2;
    if (left > camera.width || top > camera.height || left + width < 0 || top + depth < 0) continue;
    ctx.globalAlpha = open ? 0.28 : 0.72;
    ctx.fillRect(left, top, width, depth);
  }
  ctx.globalAlpha = 1;
  const [x, z, n] = door.runs[0];
  const [left, top] = [camera.sx(x * tile_cm), camera.sz(z * tile_cm)];
  if (!names || n * tile < 14 || left > camera.width || top > camera.height || left < -200 || top < 0) return;
  ctx.font = "600 11px system-ui, sans-serif";
  ctx.textBaseline = "bottom";
  ctx.fillText(door.name, left, top - 2);
}

/** Draws a sample for the legend. */
export function drawTerrainSample(ctx, size, what) {
  const side = size * 0.62;
  const at = (size - side) / 2;
  ctx.globalAlpha = { blocked: 1, open: 0.28, closed: 0.72 }[what];
  ctx.fillStyle = what === "blocked" ? BLOCKED_COLOUR : DOOR_LOOKS[what];
  ctx.fillRect(at, at, side, side);
  ctx.globalAlpha = 1;
}
