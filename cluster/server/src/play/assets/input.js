// What the visitor wants: a direction to walk, and actions. Keyboard, mouse, touch and gamepad.

import { Gamepads } from "./pad.js";

const STEPS = {
  ArrowUp: [0, -1], KeyW: [0, -1], ArrowDown: [0, 1], KeyS: [0, 1],
  ArrowLeft: [-1, 0], KeyA: [-1, 0], ArrowRight: [1, 0], KeyD: [1, 0],
};
const ACTS = { Space: "hit", KeyE: "take", KeyP: "party", KeyG: "dungeon", KeyB: "borders", KeyF: "figures" };

/** How far from the middle a pointer must be to walk there, pixels. */
const NEAR_PX = 26;

export class Input {
  /** `act(name)` is called for each action, `aim(x, y)` for a click on a place of the screen. */
  constructor(canvas, { stick, act, aim, zoom }) {
    [this.canvas, this.act, this.aim] = [canvas, act, aim];
    this.held = new Set();
    this.pointer = null;
    this.thumb = null;
    this.pads = new Gamepads(act);
    this.keys(zoom);
    this.mouse(zoom);
    this.touch(stick);
    const stop = () => this.release();
    addEventListener("blur", stop);
    document.addEventListener("visibilitychange", stop);
  }

  /** Nothing is held any more. */
  release() {
    this.held.clear();
    this.pointer = this.thumb = null;
  }

  /** The direction to walk, at most of length 1. */
  direction() {
    let [x, z] = [0, 0];
    for (const code of this.held) {
      x += STEPS[code][0];
      z += STEPS[code][1];
    }
    for (const [px, pz] of [this.thumb, this.pads.direction(), this.towards()].filter(Boolean)) {
      x += px;
      z += pz;
    }
    const length = Math.hypot(x, z);
    return length < 0.2 ? [0, 0] : [x / Math.max(length, 1), z / Math.max(length, 1)];
  }

  /** Towards the pointer that is held down on the world. */
  towards() {
    if (!this.pointer) return null;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const [x, z] = [this.pointer[0] - w / 2, this.pointer[1] - h / 2];
    const length = Math.hypot(x, z);
    return length < NEAR_PX ? null : [x / length, z / length];
  }

  keys(zoom) {
    const isText = (target) => target.closest?.("input, select, textarea, dialog") !== null;
    const isControl = (target) => target.closest?.("button") !== null;
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isText(event.target)) return;
      if (event.code in STEPS) {
        this.held.add(event.code);
        event.preventDefault();
      } else if (event.key === "Enter" && !isControl(event.target)) {
        this.act("chat");
        event.preventDefault();
      } else if (event.code in ACTS && !(isControl(event.target) && event.code === "Space")) {
        if (!event.repeat) this.act(ACTS[event.code]);
        event.preventDefault();
      } else if (event.key === "+" || event.key === "-") {
        zoom(event.key === "+" ? 1.25 : 0.8);
      }
    });
    addEventListener("keyup", (event) => this.held.delete(event.code));
    addEventListener("focusin", (event) => {
      if (isText(event.target)) this.held.clear();
    });
  }

  mouse(zoom) {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      // A click on an entity acts on it, any other place is walked to.
      if (!this.aim(event.offsetX, event.offsetY)) this.pointer = [event.offsetX, event.offsetY];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.pointer) this.pointer = [event.offsetX, event.offsetY];
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      canvas.addEventListener(end, () => { this.pointer = null; });
    }
    canvas.addEventListener("wheel", (event) => {
      zoom(event.deltaY < 0 ? 1.12 : 0.89);
      event.preventDefault();
    }, { passive: false });
  }

  /** A stick under the thumb, where there is a touch screen. */
  touch(stick) {
    if (!matchMedia("(pointer: coarse)").matches) return;
    stick.hidden = false;
    const knob = stick.firstElementChild;
    const move = (event) => {
      const box = stick.getBoundingClientRect();
      const [x, z] = [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
      const length = Math.max(Math.hypot(x, z), box.width / 2);
      this.thumb = [x / length, z / length];
      knob.style.translate = `${this.thumb[0] * 34}px ${this.thumb[1] * 34}px`;
    };
    stick.addEventListener("pointerdown", (event) => {
      stick.setPointerCapture(event.pointerId);
      move(event);
    });
    stick.addEventListener("pointermove", (event) => { if (this.thumb) move(event); });
    for (const end of ["pointerup", "pointercancel"]) {
      stick.addEventListener(end, () => {
        this.thumb = null;
        knob.style.translate = "";
      });
    }
  }
}
