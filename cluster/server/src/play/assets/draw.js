// Draws the world around the player on a canvas. It is given a picture of plain values and keeps no
// state of the game.

import * as shapes from "./shapes.js";

const { INK } = shapes;

/** Metres across the shorter side of the screen. */
const ACROSS_M = 38;

/** Between two lines of the ground, and two tufts of grass, centimetres. */
const LINE_CM = 800;
const TUFT_CM = 320;

export class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.c = canvas.getContext("2d", { alpha: false });
    this.zoom = 1;
    this.resize();
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  resize() {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    [this.w, this.h] = [w, h];
    this.canvas.width = Math.round(w * this.ratio);
    this.canvas.height = Math.round(h * this.ratio);
  }

  /** Pixels per centimetre. */
  get scale() {
    return Math.min(this.w, this.h) / (ACROSS_M * 100) * this.zoom;
  }

  /** Nearer with a factor above 1. */
  zoomBy(factor) {
    this.zoom = Math.max(0.3, Math.min(this.zoom * factor, 3));
  }

  /** The place in the world under a point of the screen. */
  placeAt(x, y) {
    return {
      x: this.eye.x + (x - this.w / 2) / this.scale,
      z: this.eye.z + (y - this.h / 2) / this.scale,
    };
  }

  eye = { x: 0, z: 0 };

  /** Draws a picture: `eye`, `size` of the map, `entities`, `dots`, `borders` or null, `texts`. */
  draw(picture) {
    const { c, w, h, ratio, scale } = this;
    this.eye = picture.eye;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillStyle = INK.edge;
    c.fillRect(0, 0, w, h);
    const at = (x, z) => [(x - this.eye.x) * scale + w / 2, (z - this.eye.z) * scale + h / 2];
    this.ground(at, picture.size);
    if (picture.borders) this.borders(at, picture.borders);
    c.fillStyle = INK.dot;
    for (const dot of picture.dots) {
      const [x, y] = at(dot.x, dot.z);
      c.fillRect(x - 2, y - 2, 4, 4);
    }
    // From here on in pixels of the screen: a picture that is only copied costs a fifth of one that
    // is turned or smoothed.
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.imageSmoothingEnabled = false;
    const r = Math.max(9, Math.round(70 * scale));
    for (const e of picture.entities) {
      const [x, y] = at(e.x, e.z);
      if (x < -60 || y < -60 || x > w + 60 || y > h + 60) continue;
      this.entity(r, e, x, y);
    }
    for (const text of picture.texts) {
      const [x, y] = at(text.x, text.z);
      c.globalAlpha = text.alpha;
      this.label(text.text, text.colour, x, y - r * 2.6 - text.up);
    }
    c.globalAlpha = 1;
  }

  /** A moment of red: something has bitten. */
  flash() {
    const { c, ratio } = this;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = "rgb(190 18 60 / 22%)";
    c.fillRect(0, 0, this.w, this.h);
  }

  entity(r, e, x, y) {
    const { ratio } = this;
    this.copy(shapes.shape(e.look, r, e.isGhost, e.facing, ratio), x, y);
    if (e.share !== null) this.copy(shapes.bar(r, e.share, ratio), x, y + r * 1.5 + 2.5);
    if (e.name) this.label(e.name, e.look === "self" ? INK.self : INK.text, x, y - r * 1.9);
  }

  label(text, colour, x, y) {
    this.copy(shapes.label(text, colour, this.ratio), x, y);
  }

  /** Copies a picture, pixel by pixel, with its middle at a point. */
  copy(picture, x, y) {
    const { c, ratio } = this;
    c.drawImage(picture, Math.round(x * ratio - picture.width / 2), Math.round(y * ratio - picture.height / 2));
  }

  ground(at, { width, depth }) {
    const { c, scale } = this;
    const [left, top] = at(0, 0);
    c.fillStyle = INK.ground;
    c.fillRect(left, top, width * scale, depth * scale);
    const [from, to] = [this.placeAt(0, 0), this.placeAt(this.w, this.h)];
    const [x0, x1] = [Math.max(0, from.x), Math.min(width, to.x)];
    const [z0, z1] = [Math.max(0, from.z), Math.min(depth, to.z)];
    c.beginPath();
    for (let x = Math.ceil(x0 / LINE_CM) * LINE_CM; x <= x1; x += LINE_CM) {
      c.moveTo(...at(x, z0));
      c.lineTo(...at(x, z1));
    }
    for (let z = Math.ceil(z0 / LINE_CM) * LINE_CM; z <= z1; z += LINE_CM) {
      c.moveTo(...at(x0, z));
      c.lineTo(...at(x1, z));
    }
    c.lineWidth = 1;
    c.strokeStyle = INK.line;
    c.stroke();
    if (scale > 0.08) this.grass(at, [x0, x1], [z0, z1]);
  }

  /** Tufts of grass, always at the same places, so that a walk is seen. */
  grass(at, [x0, x1], [z0, z1]) {
    const { c } = this;
    c.beginPath();
    for (let column = Math.ceil(x0 / TUFT_CM); column * TUFT_CM < x1; column++) {
      for (let row = Math.ceil(z0 / TUFT_CM); row * TUFT_CM < z1; row++) {
        const chance = (Math.imul(column, 73_856_093) ^ Math.imul(row, 19_349_663)) >>> 0;
        if (chance % 3 !== 0) continue;
        const [x, y] = at(column * TUFT_CM + chance % 251, row * TUFT_CM + (chance >> 8) % 251);
        for (const lean of [-3, 0, 3]) {
          c.moveTo(x + lean / 2, y);
          c.lineTo(x + lean, y - 6);
        }
      }
    }
    c.lineWidth = 1.5;
    c.strokeStyle = INK.grass;
    c.stroke();
  }

  borders(at, regions) {
    const { c, scale } = this;
    for (const region of regions) {
      const [x, y] = at(region.x0, region.z0);
      const [w, h] = [(region.x1 - region.x0) * scale, (region.z1 - region.z0) * scale];
      if (!region.isHome) {
        c.fillStyle = "rgb(192 132 252 / 13%)";
        c.fillRect(x, y, w, h);
      }
      // Each border once: the west and the north one of every region.
      c.beginPath();
      c.moveTo(x, y + h);
      c.lineTo(x, y);
      c.lineTo(x + w, y);
      c.lineWidth = 3;
      c.strokeStyle = "#f0abfc";
      c.setLineDash([10, 7]);
      c.stroke();
      c.setLineDash([]);
      if (region.isHome) continue;
      // The name stands where the region is on the screen.
      const middle = (from, size, screen) => (Math.max(from, 0) + Math.min(from + size, screen)) / 2;
      c.font = "600 15px system-ui, sans-serif";
      c.lineWidth = 4;
      c.strokeStyle = INK.shade;
      const [mx, my] = [middle(x, w, this.w), middle(y, h, this.h)];
      if (mx < x || mx > x + w || my < y || my > y + h) continue;
      c.strokeText(region.text, mx, my - 24);
      c.fillStyle = "#f5d0fe";
      c.fillText(region.text, mx, my - 24);
    }
  }
}
