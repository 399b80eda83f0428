// Draws entities, ghosts, and the view of the selected player.

import { kindLook, regionColour } from "./camera.js";

/** The radius of a player, in pixels. */
export const radius = (camera) => Math.min(8, 2.4 + Math.log2(1 + camera.scale * 100) * 1.5);

function trace(ctx, shape, x, y, r) {
  switch (shape) {
    case "circle":
      ctx.moveTo(x + r, y);
      ctx.arc(x, y, r, 0, 6.2832);
      break;
    case "square":
      ctx.rect(x - r, y - r, 2 * r, 2 * r);
      break;
    case "triangle":
      ctx.moveTo(x, y - r * 1.15);
      ctx.lineTo(x + r * 1.1, y + r * 0.85);
      ctx.lineTo(x - r * 1.1, y + r * 0.85);
      ctx.closePath();
      break;
    default:
      ctx.moveTo(x, y - r * 1.25);
      ctx.lineTo(x + r * 1.25, y);
      ctx.lineTo(x, y + r * 1.25);
      ctx.lineTo(x - r * 1.25, y);
      ctx.closePath();
  }
}

/** Draws the entities in view, players last and on top; returns how many. */
export function drawEntities(ctx, camera, world, now) {
  const byKind = new Map();
  let drawn = 0;
  for (const e of world.entities.values()) {
    const [x, y] = [camera.sx(e.x(now)), camera.sz(e.z(now))];
    if (x < -10 || y < -10 || x > camera.width + 10 || y > camera.height + 10) continue;
    let places = byKind.get(e.kind);
    if (!places) byKind.set(e.kind, (places = []));
    places.push(x, y);
    drawn += 1;
  }
  for (const kind of [...byKind.keys()].sort((a, b) => b - a)) {
    const look = kindLook(kind);
    const r = radius(camera) * look.size;
    const places = byKind.get(kind);
    ctx.beginPath();
    for (let i = 0; i < places.length; i += 2) trace(ctx, look.shape, places[i], places[i + 1], r);
    // The dark rim separates overlapping entities.
    ctx.lineWidth = kind === 0 ? 2.5 : 1.5;
    ctx.strokeStyle = "#0a0e16";
    ctx.stroke();
    ctx.globalAlpha = kind === 0 ? 1 : 0.88;
    ctx.fillStyle = look.colour;
    ctx.fill();
    ctx.globalAlpha = 1;
  }
  return drawn;
}

/** Draws ghosts as hollow rings in the colour of the region that mirrors them; returns how many. */
export function drawGhosts(ctx, camera, world, scene, now) {
  const colours = new Map(scene.regions.map((r, i) => [r.id, regionColour(i)]));
  const byMirror = new Map();
  const r = radius(camera);
  const gap = 1.2 + r * 0.28;
  let drawn = 0;
  for (const g of world.ghosts.values()) {
    const [x, y] = [camera.sx(g.x(now)), camera.sz(g.z(now))];
    if (x < -20 || y < -20 || x > camera.width + 20 || y > camera.height + 20) continue;
    let rings = byMirror.get(g.mirror);
    if (!rings) byMirror.set(g.mirror, (rings = []));
    rings.push(x, y, r * kindLook(g.kind).size + gap * (1 + g.ring));
    drawn += 1;
  }
  ctx.lineWidth = r < 4 ? 1.1 : 1.6;
  for (const [mirror, rings] of byMirror) {
    ctx.beginPath();
    for (let i = 0; i < rings.length; i += 3) trace(ctx, "circle", rings[i], rings[i + 1], rings[i + 2]);
    ctx.strokeStyle = colours.get(mirror) || "#94a3b8";
    ctx.stroke();
  }
  return drawn;
}

/** Draws the range of a player at (`x`, `z`), beneath the entities. */
export function drawRange(ctx, camera, player, scene, x, z) {
  const range = player.range;
  if (range.mode === "circle") {
    circle(ctx, camera, x, z, range.leave_cm, { dash: [5, 5], alpha: 0.55 });
    circle(ctx, camera, x, z, range.enter_cm, { fill: true, alpha: 0.95 });
  } else if (range.mode === "patches") {
    patches(ctx, camera, range, x, z);
  } else {
    ctx.strokeStyle = "#5eead4";
    ctx.setLineDash([8, 6]);
    ctx.strokeRect(camera.sx(0), camera.sz(0), scene.width_cm * camera.scale, scene.depth_cm * camera.scale);
    ctx.setLineDash([]);
  }
}

function circle(ctx, camera, x, z, cm, { fill = false, dash = [], alpha }) {
  ctx.beginPath();
  ctx.arc(camera.sx(x), camera.sz(z), cm * camera.scale, 0, 6.2832);
  ctx.fillStyle = "rgba(94,234,212,0.09)";
  if (fill) ctx.fill();
  ctx.globalAlpha = alpha;
  ctx.setLineDash(dash);
  ctx.lineWidth = 1.5;
  ctx.strokeStyle = "#5eead4";
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

/** The patches of the range: NEAR the brightest, FAR the faintest. */
function patches(ctx, camera, range, x, z) {
  const [width, depth] = range.patch_cm;
  const [px, pz] = [Math.floor(x / width), Math.floor(z / depth)];
  const size = [width * camera.scale, depth * camera.scale];
  const inRange = (dx, dz) => (range.bits >> Math.max(Math.abs(dx), Math.abs(dz))) & 1;
  ctx.beginPath();
  for (let dz = -2; dz <= 2; dz += 1) {
    for (let dx = -2; dx <= 2; dx += 1) {
      if (!inRange(dx, dz)) continue;
      const ring = Math.max(Math.abs(dx), Math.abs(dz));
      const [left, top] = [camera.sx((px + dx) * width), camera.sz((pz + dz) * depth)];
      ctx.fillStyle = `rgba(94,234,212,${[0.2, 0.12, 0.06][ring]})`;
      ctx.fillRect(left, top, ...size);
      ctx.rect(left, top, ...size);
    }
  }
  ctx.lineWidth = 1;
  ctx.strokeStyle = "rgba(94,234,212,0.42)";
  ctx.stroke();
}

/** Draws lines from a player to the entities in its view: players bright, others faint. */
export function drawSight(ctx, camera, player, world, x, z, now) {
  const to = (ids, style, width) => {
    ctx.beginPath();
    for (const id of ids) {
      const e = world.entities.get(id);
      if (!e) continue;
      ctx.moveTo(camera.sx(x), camera.sz(z));
      ctx.lineTo(camera.sx(e.x(now)), camera.sz(e.z(now)));
    }
    ctx.strokeStyle = style;
    ctx.lineWidth = width;
    ctx.stroke();
  };
  to(player.seen, "rgba(148,163,184,0.28)", 1);
  to(player.view.map((e) => e.id), "rgba(94,234,212,0.72)", 1.3);
}

/**
 * Draws the watch radius of each entity that has others in it, and a line to each of these; returns how many lines, and
 * the circles as [x, y, radius] in pixels.
 */
export function drawChases(ctx, camera, world, scene, now) {
  let lines = 0;
  const circles = [];
  const watchers = new Set();
  ctx.beginPath();
  for (const [watcher, id] of world.sighted) {
    const [from, to] = [world.entities.get(watcher), world.entities.get(id)];
    if (!from || !to) continue;
    watchers.add(from);
    ctx.moveTo(camera.sx(from.x(now)), camera.sz(from.z(now)));
    ctx.lineTo(camera.sx(to.x(now)), camera.sz(to.z(now)));
    lines += 1;
  }
  for (const e of watchers) {
    const [x, y] = [camera.sx(e.x(now)), camera.sz(e.z(now))];
    const r = (scene.kinds[e.kind]?.watch_cm?.[0] ?? 0) * camera.scale;
    ctx.moveTo(x + r, y);
    ctx.arc(x, y, r, 0, 6.2832);
    circles.push([x, y, r]);
  }
  ctx.strokeStyle = "rgba(248,113,113,0.4)";
  ctx.lineWidth = 1;
  ctx.stroke();
  return { lines, circles };
}

/** Marks the player compared with the selected one at (`x`, `z`); a line joins the two if they see each other. */
export function drawPair(ctx, camera, other, seen, x, z, now) {
  const [sx, sy, r] = [camera.sx(other.x(now)), camera.sz(other.z(now)), radius(camera) + 5];
  ctx.strokeStyle = "#fbbf24";
  ctx.lineWidth = 2.5;
  ctx.beginPath();
  if (seen) {
    ctx.moveTo(camera.sx(x), camera.sz(z));
    ctx.lineTo(sx, sy);
  }
  ctx.moveTo(sx + r, sy);
  ctx.arc(sx, sy, r, 0, 6.2832);
  ctx.stroke();
  label(ctx, sx, sy - r - 12, String(other.id));
}

/** Marks the selected player, on top of everything. */
export function drawSelected(ctx, camera, x, z, id) {
  const [sx, sy, r] = [camera.sx(x), camera.sz(z), radius(camera) + 2.5];
  ctx.beginPath();
  ctx.arc(sx, sy, r, 0, 6.2832);
  ctx.fillStyle = "#5eead4";
  ctx.fill();
  ctx.lineWidth = 2;
  ctx.strokeStyle = "#0a0e16";
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(sx, sy, r + 4.5, 0, 6.2832);
  ctx.strokeStyle = "#5eead4";
  ctx.stroke();
  label(ctx, sx, sy - r - 16, String(id));
}

function label(ctx, x, y, text) {
  ctx.font = "600 12px system-ui, sans-serif";
  const width = ctx.measureText(text).width + 12;
  ctx.fillStyle = "rgba(10,14,22,0.85)";
  ctx.beginPath();
  ctx.roundRect(x - width / 2, y - 9, width, 18, 5);
  ctx.fill();
  ctx.fillStyle = "#e6edf7";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(text, x, y + 0.5);
  ctx.textAlign = "start";
}

/** Draws a sample for the legend: a kind, a ghost or a line. */
export function drawSample(ctx, size, sample) {
  const c = size / 2;
  ctx.beginPath();
  if (sample.kind !== undefined) {
    const look = kindLook(sample.kind);
    trace(ctx, look.shape, c, c, size * 0.3 * look.size);
    ctx.fillStyle = look.colour;
    ctx.fill();
  } else if (sample.ghost) {
    trace(ctx, "circle", c, c, size * 0.36);
    ctx.lineWidth = size * 0.09;
    ctx.strokeStyle = sample.ghost;
    ctx.stroke();
    ctx.beginPath();
    trace(ctx, "circle", c, c, size * 0.16);
    ctx.fillStyle = "#f8fafc";
    ctx.fill();
  } else {
    ctx.moveTo(size * 0.1, size * 0.8);
    ctx.lineTo(size * 0.9, size * 0.2);
    ctx.lineWidth = size * 0.08;
    ctx.strokeStyle = sample.line;
    ctx.stroke();
  }
}
