// The panel beside the map: figures, regions, legend, and the selected player.

import { metres, regionColour } from "./camera.js";
import { drawSample } from "./figures.js";
import { drawTerrainSample } from "./terrain.js";

const $ = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Sets a text only if it changed, so that nothing flickers and screen readers do not repeat it. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A count for people: 1,234, then 12.3k, then 4.5M. */
export function count(n) {
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)}M`;
  if (n >= 1e4) return `${(n / 1e3).toFixed(1)}k`;
  return n >= 100 || Number.isInteger(n) ? Math.round(n).toLocaleString("en") : n.toFixed(1);
}

const ms = (n) => (n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2));
const megabytes = (n) => (n === null ? "–" : count(Math.round(n / 1048576)));

function age(seconds) {
  const s = Math.floor(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** Fills a select element, unless nothing changed. */
function options(select, rows, chosen) {
  const text = JSON.stringify(rows);
  if (select.dataset.rows !== text) {
    select.dataset.rows = text;
    select.replaceChildren(...rows.map(([value, label]) => make("option", { value }, label)));
  }
  if (select.value !== String(chosen)) select.value = String(chosen);
}

export function showScenes(scenes, scene, plane) {
  options($("scene"), scenes.map((s) => [s.name, s.name]), scene.name);
  const planes = scene.planes.map((p) => [String(p.plane), `${p.plane} · ${count(p.players)} players`]);
  if (!scene.planes.some((p) => p.plane === plane)) planes.push([String(plane), `${plane} · empty`]);
  options($("plane"), planes, plane);
}

export function showLink(state, text, more = "") {
  $("link").className = `link ${state}`;
  const [, main, rest] = $("link").children;
  say(main, text);
  say(rest, more);
}

export function showBanner(text) {
  $("banner").hidden = !text;
  say($("banner"), text || "");
}

function tile(label, value, unit, testid) {
  const dd = make("dd", { "data-testid": testid }, value);
  if (unit) dd.append(make("small", {}, unit));
  return make("div", {}, make("dt", {}, label), dd);
}

let lastCpu = null;

/** CPU use between two answers, in percent of one core. */
function cpuPercent(stats) {
  const before = lastCpu;
  lastCpu = { at: stats.uptime_s, cpu: stats.cpu_s };
  if (stats.cpu_s === null || !before || stats.uptime_s <= before.at) return "–";
  return String(Math.round((100 * (stats.cpu_s - before.cpu)) / (stats.uptime_s - before.at)));
}

export function showStats(stats) {
  const r = stats.recent;
  $("tiles").replaceChildren(
    tile("Players", count(stats.players), "", "stat-players"),
    tile("Entities", count(stats.entities), "", "stat-entities"),
    tile("Ghosts", count(stats.ghosts), "", "stat-ghosts"),
    tile("Tick p50", ms(r.tick_ms.p50), "ms", "stat-p50"),
    tile("Tick p99", ms(r.tick_ms.p99), "ms", "stat-p99"),
    tile("Handoffs", count(stats.handoffs), "", "stat-handoffs"),
    tile("Frames", count(r.frames_per_s), "/s", "stat-frames"),
    tile("Updates", count(r.updates_per_s), "/s", "stat-updates"),
    tile("Lost", count(stats.frames_lost + stats.borders_lost), "", "stat-lost"),
    tile("CPU", cpuPercent(stats), "%", "stat-cpu"),
    tile("Memory", megabytes(stats.rss_bytes), "MB", "stat-memory"),
    tile("Skipped", count(stats.skipped_ticks), "ticks", "stat-skipped"),
  );
  say($("uptime"), `${stats.node} · up ${age(stats.uptime_s)}`);
}

/** Lists the regions of the shown scene; calls `go` with a chosen region. */
export function showRegions(scene, stats, late, go) {
  const body = $("regions");
  if (body.dataset.scene !== scene.name || body.rows.length !== scene.regions.length) {
    body.dataset.scene = scene.name;
    body.replaceChildren(...scene.regions.map((region, i) => regionRow(region, i, go)));
  }
  scene.regions.forEach((region, i) => {
    const cells = body.rows[i].cells;
    const figures = stats && stats.regions.find((r) => r.region === region.id);
    cells[0].lastElementChild.hidden = !late.includes(region.id);
    cells[0].firstElementChild.title = `owner ${region.owner}, epoch ${region.epoch}`;
    if (!figures) return;
    say(cells[1], count(figures.players));
    say(cells[2], count(figures.entities));
    say(cells[3], count(figures.ghosts));
    say(cells[4], ms(figures.tick_ms.p99));
  });
  say($("regions-count"), `${scene.regions.length} · map version ${scene.map_version}`);
}

/** Shows the logic workers; nothing where there never was one. */
export function showWorkers(workers) {
  if (workers.length) $("workers-card").hidden = false;
  const body = $("workers");
  while (body.rows.length > workers.length) body.deleteRow(-1);
  while (body.rows.length < workers.length) {
    const name = make("td", {}, make("span"), make("span", { class: "late", hidden: "" }));
    const cells = [1, 2, 3, 4].map(() => make("td", {}, "–"));
    body.append(make("tr", { "data-testid": "worker" }, name, ...cells));
  }
  workers.forEach((worker, i) => {
    const row = body.rows[i];
    const [name, late] = row.cells[0].children;
    row.dataset.worker = worker.worker;
    say(name, worker.name || String(worker.worker));
    say(late, worker.late ? "late" : "slow");
    late.hidden = !worker.late && worker.share === 1;
    say(row.cells[1], worker.scene_name);
    say(row.cells[2], count(worker.regions));
    say(row.cells[3], `${count(worker.waiting_bytes)} B`);
    say(row.cells[4], count(worker.refused_commands));
    const pace = `answers take ${worker.answer_ticks.toFixed(1)} ticks`;
    row.title = worker.late_answers ? `${pace}, ${worker.late_answers} late answers` : pace;
  });
  say($("workers-count"), String(workers.length));
}

/** Shows the processes of the cluster: where each runs, and by which release. */
export function showProcesses(nodes) {
  $("processes-card").hidden = nodes.length < 2;
  const body = $("processes");
  while (body.rows.length > nodes.length) body.deleteRow(-1);
  while (body.rows.length < nodes.length) {
    const name = make("td", {}, make("span"), make("span", { class: "late", hidden: "" }, "drains"));
    body.append(make("tr", { "data-testid": "process" }, name, ...[1, 2, 3, 4].map(() => make("td", {}, "–"))));
  }
  nodes.forEach((node, i) => {
    const row = body.rows[i];
    const [name, drains] = row.cells[0].children;
    say(name, node.name);
    drains.hidden = !node.drains;
    say(row.cells[1], node.takes_regions ? count(node.owns) : "–");
    say(row.cells[2], node.release || "–");
    say(row.cells[3], node.zone || "–");
    say(row.cells[4], Object.entries(node.labels).map(([key, value]) => `${key}=${value}`).join(", ") || "–");
    row.title = `process ${node.process} at ${node.address}`;
  });
  say($("processes-count"), String(nodes.length));
}

function regionRow(region, i, go) {
  const button = make("button", { type: "button" }, swatch(i), region.name);
  button.addEventListener("click", () => go(region));
  const name = make("td", {}, button, make("span", { class: "late", hidden: "" }, "late"));
  const cells = [1, 2, 3, 4].map(() => make("td", {}, "–"));
  return make("tr", { "data-testid": "region", "data-region": region.id }, name, ...cells);
}

function swatch(index) {
  const square = make("i", { class: "swatch" });
  square.style.color = regionColour(index);
  return square;
}

export function showLegend(scene) {
  const samples = scene.kinds.map((kind, i) => [kind.name, { kind: i }]);
  samples.push(["ghost", { ghost: regionColour(1) }], ["view list", { line: "#5eead4" }]);
  if (scene.terrain) {
    samples.push(["blocked", { terrain: "blocked" }], ["open door", { terrain: "open" }],
      ["closed door", { terrain: "closed" }]);
  }
  $("legend").replaceChildren(...samples.map(([text, sample]) => {
    const canvas = make("canvas", { width: 40, height: 40, "aria-hidden": "true" });
    const ctx = canvas.getContext("2d");
    if (sample.terrain) drawTerrainSample(ctx, 40, sample.terrain);
    else drawSample(ctx, 40, sample);
    return make("li", {}, canvas, text);
  }));
}

/** A player's range as text. */
function rangeText(range) {
  if (range.mode === "circle") return `${metres(range.enter_cm)} in, ${metres(range.leave_cm)} out`;
  if (range.mode === "all") return "everybody";
  const rings = ["near", "middle", "far"].filter((_, i) => (range.bits >> i) & 1);
  const what = rings.length === 3 ? "full, 5 × 5" : rings.join(" + ") || "none";
  const [width, depth] = range.patch_cm.map(metres);
  return `${what} of ${width === depth ? width : `${width} × ${depth}`}`;
}

/**
 * Shows the selected player; `player` is null while unknown, `gone` is true if no region has it. Calls `choose` and
 * `compare` with an id of its view list.
 */
export function showPlayer(selected, player, gone, scene, { choose, compare, other }) {
  $("details").hidden = !player;
  $("follow").hidden = $("clear").hidden = selected === null;
  $("hint").hidden = Boolean(player) && !gone;
  if (selected === null) say($("hint"), "Select a player on the map to see its range, its view list, and why.");
  else if (gone) say($("hint"), `No region has player ${selected}.`);
  else say($("hint"), `Looking for player ${selected} …`);
  if (!player) return;
  const index = scene.regions.findIndex((r) => r.id === player.region);
  if ($("p-region").textContent !== player.region_name) {
    $("p-region").replaceChildren(swatch(index), player.region_name);
  }
  say($("p-id"), String(player.id));
  say($("p-plane"), String(player.plane));
  say($("p-epoch"), String(player.epoch));
  const m = (cm) => (cm / 100).toFixed(1);
  say($("p-pos"), `${m(player.pos.x)}, ${m(player.pos.z)} m`);
  say($("p-range"), rangeText(player.range));
  say($("p-views"), `${player.view.length} / ${player.view_cap}`);
  $("p-meter").style.width = `${Math.min(100, (100 * player.view.length) / player.view_cap)}%`;
  const list = $("p-list");
  // While a button of the list has the focus, the list is not replaced, so that the focus stays.
  if (!(list.contains(document.activeElement) && list.matches(":hover"))) showView(list, player.view, choose, compare);
  for (const row of list.rows) row.classList.toggle("other", Number(row.dataset.id) === other);
  say($("p-worst"), player.worst ? `Full: ${player.worst.id} is replaced first by a better candidate.` : "");
  say($("p-seen"), player.seen.length ? `and ${count(player.seen.length)} other entities` : "");
  const property = (p) => `${p.name || p.id} = ${JSON.stringify(p.value)}`;
  const facing = `faces ${((player.facing * 360) / 65536).toFixed(0)}°`;
  say($("p-state"), [facing, ...player.properties.map(property)].join(", "));
}

/** Fills the table of a view list, the best first; a focused button keeps the focus. */
function showView(list, view, choose, compare) {
  const ids = view.map((e) => e.id).join();
  if (list.dataset.ids !== ids) {
    const focused = list.contains(document.activeElement) ? document.activeElement.textContent : null;
    list.dataset.ids = ids;
    list.replaceChildren(...view.map((e) => viewRow(e.id, choose, compare)));
    const again = focused && [...list.querySelectorAll("button")].find((b) => b.textContent === focused);
    if (again) again.focus();
  }
  view.forEach((e, i) => {
    const { cells } = list.rows[i];
    say(cells[0], String(e.place));
    say(cells[2], e.bond ? e.bond.name : "–");
    say(cells[3], e.dist_cm === null ? "–" : `${(e.dist_cm / 100).toFixed(1)} m`);
  });
}

function viewRow(id, choose, compare) {
  const button = make("button", { type: "button", "aria-label": `Select player ${id}; with Shift, compare` }, String(id));
  button.addEventListener("click", (event) => (event.shiftKey ? compare(id) : choose(id)));
  const cells = [[], [button], [], []].map((inside) => make("td", {}, ...inside));
  return make("tr", { "data-id": id }, ...cells);
}

/** The scale bar: a round length of at most 110 pixels. */
export function showScale(camera) {
  const most = 110 / camera.scale;
  const power = 10 ** Math.floor(Math.log10(most));
  const length = [5, 2, 1].map((n) => n * power).find((n) => n <= most);
  const [text, bar] = $("scale").children;
  say(text, metres(length));
  bar.style.width = `${Math.round(length * camera.scale)}px`;
}

export function showTip(at, text) {
  const tip = $("tip");
  tip.hidden = !text;
  if (!text) return;
  say(tip, text);
  const left = Math.min(at.x + 14, tip.parentElement.clientWidth - tip.offsetWidth - 6);
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(4, at.y - 34))}px)`;
}

export const showWhere = (text) => say($("where"), text);
export const announce = (text) => say($("said"), text);
