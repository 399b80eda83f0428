// Draws the ground: regions in their colours, lands, patches, names.

import { regionColour } from "./camera.js";

/** The regions of a plane, each with its index among all regions. */
function onPlane(scene, plane) {
  const groups = scene.plane_groups;
  const group = ((plane % groups) + groups) % groups;
  return scene.regions.map((region, i) => [region, i]).filter(([region]) => region.group === group);
}

/** Draws the ground of a scene in one plane. */
export function drawGround(ctx, camera, scene, plane, options) {
  ctx.fillStyle = "#0a0e16";
  ctx.fillRect(0, 0, camera.width, camera.height);
  const regions = onPlane(scene, plane);
  regions.forEach(([region, i]) => fillRegion(ctx, camera, region.rect, regionColour(i)));
  if (options.grid) drawGrid(ctx, camera, scene);
  regions.forEach(([region, i]) => strokeRegion(ctx, camera, region.rect, regionColour(i)));
}

/** Draws the names of the regions on top of the ground, with a mark for those in `late`. */
export function drawNames(ctx, camera, scene, plane, late) {
  onPlane(scene, plane).forEach(([region, i]) =>
    nameRegion(ctx, camera, region, regionColour(i), late.includes(region.id)));
}

function box(camera, r) {
  const x = camera.sx(r.x0);
  const y = camera.sz(r.z0);
  return [x, y, camera.sx(r.x1) - x, camera.sz(r.z1) - y];
}

function fillRegion(ctx, camera, rect, colour) {
  ctx.globalAlpha = 0.13;
  ctx.fillStyle = colour;
  ctx.fillRect(...box(camera, rect));
  ctx.globalAlpha = 1;
}

/** Draws each region's outline inside the region, so that a border shows both colours. */
function strokeRegion(ctx, camera, rect, colour) {
  const [x, y, w, h] = box(camera, rect);
  ctx.strokeStyle = colour;
  ctx.globalAlpha = 0.75;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(x + 1.25, y + 1.25, w - 2.5, h - 2.5);
  ctx.globalAlpha = 1;
}

/** Draws lines, so many centimetres apart along x and z, within the map and the view. */
function lines(ctx, camera, scene, [stepX, stepZ], style) {
  const v = camera.view();
  const [x0, z0] = [Math.max(0, v.x0), Math.max(0, v.z0)];
  const [x1, z1] = [Math.min(scene.width_cm, v.x1), Math.min(scene.depth_cm, v.z1)];
  ctx.beginPath();
  for (let x = Math.ceil(x0 / stepX) * stepX; x <= x1; x += stepX) {
    const s = Math.round(camera.sx(x)) + 0.5;
    ctx.moveTo(s, camera.sz(z0));
    ctx.lineTo(s, camera.sz(z1));
  }
  for (let z = Math.ceil(z0 / stepZ) * stepZ; z <= z1; z += stepZ) {
    const s = Math.round(camera.sz(z)) + 0.5;
    ctx.moveTo(camera.sx(x0), s);
    ctx.lineTo(camera.sx(x1), s);
  }
  ctx.strokeStyle = style;
  ctx.lineWidth = 1;
  ctx.stroke();
}

function drawGrid(ctx, camera, scene) {
  const patch = Math.min(...scene.patch_cm) * camera.scale;
  const land = scene.land_cm * camera.scale;
  // Lines fade in as the zoom moves them far enough apart.
  const strength = (px, from) => Math.min(1, Math.max(0, (px - from) / from));
  const fine = strength(patch, 9) * 0.055;
  if (fine > 0) lines(ctx, camera, scene, scene.patch_cm, `rgba(226,232,240,${fine.toFixed(3)})`);
  const coarse = strength(land, 16) * 0.15;
  if (coarse > 0) lines(ctx, camera, scene, [scene.land_cm, scene.land_cm], `rgba(226,232,240,${coarse.toFixed(3)})`);
}

/** Draws a region's name in the corner of its visible part. */
function nameRegion(ctx, camera, region, colour, late) {
  const [x, y, w, h] = box(camera, region.rect);
  const left = Math.max(x, 0);
  const top = Math.max(y, 0);
  const room = Math.min(Math.min(x + w, camera.width) - left, Math.min(y + h, camera.height) - top);
  if (room < 30) return;
  const size = room < 90 ? 11 : 14;
  ctx.font = `650 ${size}px system-ui, sans-serif`;
  const text = late ? `${region.name} · late` : region.name;
  const width = ctx.measureText(text).width;
  ctx.fillStyle = late ? "#fbbf24" : colour;
  ctx.globalAlpha = 0.85;
  ctx.beginPath();
  ctx.roundRect(left + 8, top + 8, width + 12, size + 8, 5);
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.fillStyle = "#0a0e16";
  ctx.textBaseline = "middle";
  ctx.fillText(text, left + 14, top + 8.5 + (size + 8) / 2);
}
