// Turns mouse, touch and keys on the map into a few commands.

const CLICK_PX = 6;

/**
 * Listens on the canvas. `on` has: `moved()` after the user moved or zoomed the camera,
 * `click(x, y, reach, shift)`, `hover(x, y)` or `hover(null)`, and `key(name)` for a command key.
 */
export function listen(canvas, camera, on) {
  const pointers = new Map();
  let travelled = 0;
  let spread = 0;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const middle = () => {
    const all = [...pointers.values()];
    const x = all.reduce((sum, p) => sum + p.x, 0) / all.length;
    const y = all.reduce((sum, p) => sum + p.y, 0) / all.length;
    return { x, y, spread: all.length > 1 ? Math.hypot(all[0].x - all[1].x, all[0].y - all[1].y) : 0 };
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    if (pointers.size === 0) travelled = 0;
    pointers.set(event.pointerId, place(event));
    spread = middle().spread;
    if (pointers.size > 1) travelled = Infinity;
  });

  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) {
      if (event.pointerType === "mouse") on.hover(place(event));
      return;
    }
    const before = middle();
    pointers.set(event.pointerId, place(event));
    const after = middle();
    travelled += Math.hypot(after.x - before.x, after.y - before.y);
    if (travelled <= CLICK_PX) return;
    canvas.classList.add("dragging");
    camera.pan(after.x - before.x, after.y - before.y);
    if (spread > 0 && after.spread > 0) {
      camera.zoomAt(after.x, after.y, after.spread / spread);
      spread = after.spread;
    }
    on.moved("pan");
  });

  const up = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove("dragging");
    if (pointers.size > 0) {
      spread = middle().spread;
    } else if (event.type === "pointerup" && travelled <= CLICK_PX) {
      const { x, y } = place(event);
      on.click(x, y, event.pointerType === "touch" ? 24 : 13, event.shiftKey);
    }
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => on.hover(null));

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 20 : 1;
    const { x, y } = place(event);
    const turn = Math.max(-120, Math.min(120, event.deltaY * lines));
    camera.zoomAt(x, y, Math.exp(-turn * (event.ctrlKey ? 0.01 : 0.0022)));
    on.moved("zoom");
  }, { passive: false });

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key(event.key)) event.preventDefault();
  });

  function key(name) {
    const step = 60;
    const pans = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (pans[name]) {
      camera.pan(...pans[name]);
      on.moved("pan");
    } else if (name === "+" || name === "=" || name === "-") {
      camera.zoomAt(camera.width / 2, camera.height / 2, name === "-" ? 1 / 1.4 : 1.4);
      on.moved("zoom");
    } else {
      return on.key(name.length === 1 ? name.toLowerCase() : name);
    }
    return true;
  }
}
