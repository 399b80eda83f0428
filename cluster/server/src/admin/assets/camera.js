// The camera and the colours of the map. World lengths are in centimetres, screen lengths in pixels.

const REGION_COLOURS = [
  "#5b8def", "#2fb9a6", "#e5924f", "#a97bf0", "#e0709a", "#94b447", "#46b5e0", "#cfa63d",
  "#7d86f5", "#58bd72", "#d9735b", "#c77bd0",
];
const KINDS = [
  { shape: "circle", colour: "#f8fafc", size: 1.15 },
  { shape: "square", colour: "#7dd3fc", size: 0.8 },
  { shape: "triangle", colour: "#fb7185", size: 0.95 },
  { shape: "diamond", colour: "#c4b5fd", size: 0.9 },
  { shape: "square", colour: "#fbbf24", size: 0.55 },
  { shape: "diamond", colour: "#86efac", size: 0.7 },
  { shape: "triangle", colour: "#f0abfc", size: 0.8 },
];

/** The colour of the region at this index of its scene's list; neighbours differ. */
export const regionColour = (index) => REGION_COLOURS[Math.max(0, index) % REGION_COLOURS.length];

/** The shape and colour of a kind; the first kind is always the player. */
export const kindLook = (kind) => KINDS[kind < KINDS.length ? kind : 1 + (kind % (KINDS.length - 1))];

/** A length for people. */
export function metres(cm) {
  if (cm >= 100000) return `${+(cm / 100000).toFixed(2)} km`;
  return cm >= 100 ? `${+(cm / 100).toFixed(cm < 1000 ? 1 : 0)} m` : `${Math.round(cm)} cm`;
}

export class Camera {
  constructor() {
    // The middle of the view, pixels per centimetre, and the size of the view.
    Object.assign(this, { x: 0, z: 0, scale: 0.01, width: 1, height: 1 });
    this.foot = 0; // pixels at the bottom of the view that stay free when the whole map is shown
    this.bounds = { x0: 0, z0: 0, x1: 1, z1: 1 };
    this.wantedScale = null;
  }

  sx(x) { return (x - this.x) * this.scale + this.width / 2; }
  sz(z) { return (z - this.z) * this.scale + this.height / 2; }
  worldX(sx) { return (sx - this.width / 2) / this.scale + this.x; }
  worldZ(sz) { return (sz - this.height / 2) / this.scale + this.z; }

  /** Part of the world in view. */
  view() {
    return {
      x0: this.worldX(0), z0: this.worldZ(0), x1: this.worldX(this.width), z1: this.worldZ(this.height),
    };
  }

  fitScale() {
    const b = this.bounds;
    const room = Math.min(this.width, this.height) < 420 ? 12 : 36;
    return Math.max(1e-7, Math.min(
      (this.width - 2 * room) / (b.x1 - b.x0),
      (this.height - this.foot - 2 * room) / (b.z1 - b.z0),
    ));
  }

  /** Shows the whole map. */
  fit() {
    const b = this.bounds;
    this.x = (b.x0 + b.x1) / 2;
    this.scale = this.fitScale();
    this.z = (b.z0 + b.z1) / 2 + this.foot / 2 / this.scale;
    this.wantedScale = null;
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.z -= dy / this.scale;
    this.keepInside();
  }

  /** Zooms by `factor` around a point of the screen, which stays where it is. */
  zoomAt(sx, sy, factor) {
    const [x, z] = [this.worldX(sx), this.worldZ(sy)];
    this.wantedScale = null;
    this.setScale(this.scale * factor);
    this.x = x - (sx - this.width / 2) / this.scale;
    this.z = z - (sy - this.height / 2) / this.scale;
    this.keepInside();
  }

  setScale(scale) {
    this.scale = Math.min(1, Math.max(this.fitScale() * 0.5, scale));
  }

  keepInside() {
    const b = this.bounds;
    this.x = Math.min(b.x1, Math.max(b.x0, this.x));
    this.z = Math.min(b.z1, Math.max(b.z0, this.z));
  }

  /** Moves by a fraction (0 to 1) towards a position and a scale. */
  approach(x, z, part) {
    this.x += (x - this.x) * part;
    this.z += (z - this.z) * part;
    if (this.wantedScale !== null) {
      this.setScale(this.scale * (this.wantedScale / this.scale) ** part);
      if (Math.abs(Math.log(this.wantedScale / this.scale)) < 0.01) this.wantedScale = null;
    }
  }
}
