// Balancing by load: the heat of regions and borders on the map, and what is decided, on a card.

const $ = (id) => document.getElementById(id);

/** A share of a tick from which a region is in an emergency: the end of the scale. */
const HOTTEST = 0.8;

const percent = (share) => `${Math.round(100 * share)} %`;

/** From green to red. */
const heat = (share, alpha) => `hsla(${Math.round(150 * (1 - Math.min(1, share / HOTTEST)))}, 85%, 55%, ${alpha})`;

const box = (camera, r) => [camera.sx(r.x0), camera.sz(r.z0), (r.x1 - r.x0) * camera.scale, (r.z1 - r.z0) * camera.scale];

/** The part of a border that two regions have in common, in centimetres; null: only a corner, or nothing. */
function side(a, b) {
  const from = [Math.max(a.x0, b.x0), Math.max(a.z0, b.z0)];
  const to = [Math.min(a.x1, b.x1), Math.min(a.z1, b.z1)];
  const [width, depth] = [to[0] - from[0], to[1] - from[1]];
  return (width === 0 && depth > 0) || (depth === 0 && width > 0) ? [...from, ...to] : null;
}

/**
 * Draws how much of a tick each region takes, and the pairs of players that see each other across borders; returns how
 * many regions and borders.
 */
export function drawLoads(ctx, camera, scene, plane, balance) {
  let drawn = 0;
  for (const [region, share] of shares(scene, plane, balance)) {
    const [x, y, w, h] = box(camera, region.rect);
    ctx.fillStyle = heat(share, 0.34);
    ctx.fillRect(x, y, w, h);
    drawn += 1;
  }
  return { regions: drawn, borders: drawBorders(ctx, camera, onPlane(scene, plane), balance.borders) };
}

/** Writes how much of a tick each region takes, on top of its entities. */
export function nameLoads(ctx, camera, scene, plane, balance) {
  ctx.font = "650 17px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const [region, share] of shares(scene, plane, balance)) {
    const [x, y, w, h] = box(camera, region.rect);
    if (Math.min(w, h) < 40) continue;
    ctx.fillStyle = "rgba(10,14,22,0.75)";
    ctx.beginPath();
    ctx.roundRect(x + w / 2 - 31, y + h / 2 - 14, 62, 28, 7);
    ctx.fill();
    ctx.fillStyle = "#f8fafc";
    ctx.fillText(percent(share), x + w / 2, y + h / 2 + 1);
  }
  ctx.textAlign = "start";
}

/** The regions of a plane. */
function onPlane(scene, plane) {
  const group = ((plane % scene.plane_groups) + scene.plane_groups) % scene.plane_groups;
  return scene.regions.filter((region) => region.group === group);
}

/** The regions of a plane that have reported lately, each with its share of a tick. */
function shares(scene, plane, balance) {
  const loads = new Map(balance.regions.map((load) => [load.region, load.share]));
  const known = (region) => typeof loads.get(region.id) === "number";
  return onPlane(scene, plane).filter(known).map((region) => [region, loads.get(region.id)]);
}

function drawBorders(ctx, camera, regions, borders) {
  const rects = new Map(regions.map((region) => [region.id, region.rect]));
  let drawn = 0;
  for (const { regions: [a, b], pairs } of borders) {
    const line = rects.has(a) && rects.has(b) && side(rects.get(a), rects.get(b));
    if (!line || pairs === 0) continue;
    ctx.beginPath();
    ctx.moveTo(camera.sx(line[0]), camera.sz(line[1]));
    ctx.lineTo(camera.sx(line[2]), camera.sz(line[3]));
    ctx.lineWidth = 1.5 + Math.min(8, Math.log2(1 + pairs));
    ctx.strokeStyle = "rgba(251,191,36,0.75)";
    ctx.stroke();
    drawn += 1;
  }
  return drawn;
}

/** What balancing does at all. */
function mode(balance) {
  if (balance.paused_s > 0) return `paused for ${balance.paused_s} s`;
  return balance.mode === "on" ? "on" : "only told";
}

function rows(list, lines) {
  list.replaceChildren(...lines.map(([head, text]) => {
    const [item, what] = [document.createElement("li"), document.createElement("b")];
    what.textContent = head;
    item.append(what, ` ${text}`);
    return item;
  }));
}

/** Fills the card; `balance` null: no leader tells. */
export function showBalance(balance) {
  $("balance-card").hidden = $("loads").hidden = balance === null;
  if (!balance) return;
  $("balance-mode").textContent = `${mode(balance)} · by ${balance.leader}`;
  rows($("balance-nodes"), balance.nodes.map((node) => [node.node, `${percent(node.share)} · ${node.regions} regions`]));
  const next = balance.plan.slice(0, 4).map((line) => [line.ordered ? "ordered" : "next", line.action]);
  const kept = balance.reservations.map((of) => [of.nodes.join(", "), `reserved for ${of.scene}, ${of.for_s} s more`]);
  rows($("balance-next"), next.length ? [...next, ...kept] : [["next", "nothing"], ...kept]);
  rows($("balance-why"), balance.records.slice(0, 4).map((record) => {
    const best = record.candidates[0];
    const figures = best ? ` (${best.action}: gain ${percent(best.gain)}, charge ${percent(best.charge)})` : "";
    return [`${record.subject}, ${record.rule}`, `${record.action ?? `nothing: ${record.refusal}`}${record.action ? "" : figures}`];
  }));
}
