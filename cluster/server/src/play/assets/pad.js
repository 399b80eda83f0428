// Gamepads: the left stick or the cross walks, buttons act.

const ACTS = ["hit", "take", "party", "dungeon"];
const CROSS = { 12: [0, -1], 13: [0, 1], 14: [-1, 0], 15: [1, 0] };

export class Gamepads {
  constructor(act) {
    this.act = act;
    this.down = new Set();
  }

  /** The direction of the first gamepad that has one, or null. Buttons that went down act. */
  direction() {
    let way = null;
    for (const pad of navigator.getGamepads?.() ?? []) {
      if (!pad) continue;
      ACTS.forEach((name, n) => this.button(`${pad.index}:${n}`, pad.buttons[n]?.pressed, name));
      const [x, z] = [pad.axes[0] ?? 0, pad.axes[1] ?? 0];
      if (Math.hypot(x, z) > 0.25) way ??= [x, z];
      for (const [n, cross] of Object.entries(CROSS)) {
        if (pad.buttons[n]?.pressed) way ??= cross;
      }
    }
    return way;
  }

  button(key, isDown, name) {
    if (isDown && !this.down.has(key)) this.act(name);
    if (isDown) this.down.add(key);
    else this.down.delete(key);
  }
}
