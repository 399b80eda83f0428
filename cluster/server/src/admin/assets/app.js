// The page's main module: polls the server, keeps the state, draws each frame.

import { get, onWanted, setToken } from "./access.js";
import { Camera } from "./camera.js";
import { drawChases, drawEntities, drawGhosts, drawPair, drawRange, drawSelected, drawSight } from "./figures.js";
import { drawGround, drawNames } from "./ground.js";
import { listen } from "./input.js";
import { drawLoads, nameLoads, showBalance } from "./loads.js";
import { Pair, listenPair, showPair } from "./pair.js";
import * as panel from "./panel.js";
import { Terrain } from "./terrain.js";
import { World } from "./world.js";

const POLL_MS = 250;
const FIGURES_MS = 1000;
const SCENES_MS = 3000;
const TIMEOUT_MS = 4000;
/** How long a player may be missing, as in a handoff, before it counts as gone, in milliseconds. */
const GONE_MS = 2500;

const $ = (id) => document.getElementById(id);
const canvas = $("map");
const ctx = canvas.getContext("2d");
const camera = new Camera();
const world = new World();
const terrain = new Terrain(() => { state.dirty = true; });
const pair = new Pair();
const still = matchMedia("(prefers-reduced-motion: reduce)");

const state = {
  scenes: [], scene: null, plane: 0, stats: null, balance: null,
  selected: null, player: null, playerSeenAt: 0, gone: false, follow: true,
  options: { ghosts: true, grid: true, names: true, walls: true, loads: false },
  connected: false, userMoved: false, dirty: true, lastFrame: 0,
};

/** For tests and debugging: what the page shows now. */
window.purview = {
  errors: [], connected: false, polls: 0, frames: 0,
  scene: null, plane: 0, regions: [], entities: 0, drawn: 0, ghosts: 0, selected: null, player: null,
  other: null, why: null, joined: false, chases: 0, radii: [], loads: null,
  /** The point of the canvas where an entity is drawn; null if it is not drawn. */
  placeOf(id) {
    const e = world.entities.get(id);
    const box = canvas.getBoundingClientRect();
    const now = performance.now();
    return e ? { x: box.left + camera.sx(e.x(now)), y: box.top + camera.sz(e.z(now)) } : null;
  },
  /** The point of the canvas, in pixels, of a position in the world, in centimetres. */
  pixelOf(x, z) {
    const density = canvas.width / camera.width;
    return { x: Math.floor(camera.sx(x) * density), y: Math.floor(camera.sz(z) * density) };
  },
  /** Centres the map on a position, with `scale` pixels per centimetre. */
  lookAt(x, z, scale) {
    setFollow(false);
    [camera.x, camera.z, camera.wantedScale] = [x, z, null];
    camera.setScale(scale);
    moved();
  },
  get scale() { return camera.scale; },
  get terrain() { return { ...terrain.shown, shape: Boolean(terrain.shape), doors: terrain.doors() }; },
  /** The ground of the shown plane's regions. */
  rects: () => state.scene.regions.map((region) => region.rect),
  playerIds: () => world.players().map((e) => e.id),
  select: (id) => select(id),
  compare: (id) => compare(id),
};

function watchErrors() {
  const note = (text) => window.purview.errors.push(String(text));
  addEventListener("error", (event) => note(event.message));
  addEventListener("unhandledrejection", (event) => note(event.reason));
  addEventListener("securitypolicyviolation", (event) => note(`refused: ${event.blockedURI}`));
  const error = console.error;
  console.error = (...args) => {
    note(args.join(" "));
    error.apply(console, args);
  };
}

/** Gets JSON; `null` if it does not exist. Throws if the server is unreachable. */
async function ask(path) {
  const answer = await get(path, { signal: AbortSignal.timeout(TIMEOUT_MS), cache: "no-store" });
  if (answer.ok) return answer.json();
  if ([401, 404, 503].includes(answer.status)) return null;
  throw new Error(`${path}: ${answer.status}`);
}

/** Runs `work` for ever, with at least `every` milliseconds between two starts. */
async function repeat(every, work) {
  for (;;) {
    const begin = performance.now();
    if (!document.hidden) {
      try {
        await work();
        setConnected(true);
      } catch (error) {
        setConnected(false, error);
      }
    }
    const took = performance.now() - begin;
    const pause = state.connected ? Math.max(every - took, took) : 1000;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

function setConnected(connected) {
  if (connected && !state.connected) panel.showBanner("");
  if (!connected) {
    panel.showBanner("The server does not answer. Trying again …");
    panel.showLink("down", "no answer");
  }
  state.connected = window.purview.connected = connected;
}

async function pollScenes() {
  const answer = await ask("api/scenes");
  if (!answer || answer.scenes.length === 0) return;
  state.scenes = answer.scenes;
  const scene = answer.scenes.find((s) => s.name === state.scene?.name) || answer.scenes[0];
  const first = state.scene?.name !== scene.name;
  state.scene = scene;
  if (first) enterScene(scene, scene.planes.find((p) => p.players > 0)?.plane ?? scene.planes[0].plane);
  panel.showScenes(state.scenes, scene, state.plane);
  $("walls").hidden = !scene.terrain;
  await terrain.enter(scene, ask);
  const cluster = await ask("api/cluster");
  if (cluster) panel.showProcesses(cluster.nodes);
  // A server that is no part of a cluster has nothing to balance.
  state.balance = cluster && cluster.nodes.length > 0 ? await ask("api/balance") : null;
  showBalance(state.balance);
  state.dirty = true;
}

/** Switches to another scene. */
function enterScene(scene, plane) {
  state.scene = scene;
  state.userMoved = false;
  camera.bounds = { x0: 0, z0: 0, x1: scene.width_cm, z1: scene.depth_cm };
  camera.fit();
  panel.showLegend(scene);
  $("walls").hidden = !scene.terrain;
  setPlane(plane);
  terrain.enter(scene, ask).catch((error) => setConnected(false, error));
}

function setPlane(plane) {
  state.plane = plane;
  world.clear();
  window.purview.scene = state.scene.name;
  window.purview.plane = plane;
  panel.showScenes(state.scenes, state.scene, plane);
  state.dirty = true;
}

async function pollMap() {
  const { scene, plane, selected } = state;
  if (!scene) return;
  const query = new URLSearchParams({ scene: scene.name, plane, ghosts: state.options.ghosts ? 1 : 0 });
  const { other } = pair;
  const [answer, player, why] = await Promise.all([
    ask(`api/entities?${query}`),
    selected === null ? null : ask(`api/player/${selected}`),
    other === null ? null : ask(pair.path(selected)),
  ]);
  const now = performance.now();
  if (answer && state.scene.name === answer.scene && state.plane === answer.plane) {
    world.apply(answer, now, state.scene);
    terrain.apply(answer.doors);
    panel.showLink("up", "live", `· tick ${Math.max(0, ...world.ticks.map((t) => t[1]))}`);
  }
  if (selected !== null && selected === state.selected) applyPlayer(player, now);
  if (other !== null && other === pair.other && selected === state.selected) applyWhy(why, now);
  window.purview.polls += 1;
  window.purview.entities = world.entities.size;
  state.dirty = true;
}

function applyPlayer(player, now) {
  if (player) {
    const fresh = state.player === null;
    state.player = player;
    state.playerSeenAt = now;
    state.gone = false;
    if (fresh || state.follow) followAway(player);
    if (fresh) showRange(player);
  } else if (now - state.playerSeenAt > GONE_MS) {
    state.gone = true;
  }
  showSelected();
}

function showSelected() {
  window.purview.player = state.player;
  const list = { choose: select, compare, other: pair.other };
  panel.showPlayer(state.selected, state.player, state.gone, state.scene, list);
}

function applyWhy(answer, now) {
  if (pair.apply(answer, now)) panel.announce(pair.sentences.join(" "));
  window.purview.why = pair.answer;
  showPair(pair);
}

function setOther(id) {
  pair.choose(id, performance.now());
  Object.assign(window.purview, { other: id, why: null });
  showPair(pair);
}

/** Shows why the selected player and this one see each other or not; `null` ends the comparison. */
function compare(id) {
  if (state.selected === null || id === pair.other) return;
  setOther(id);
  showSelected();
  pollNow();
}

/** Follows a player that went to another scene or plane. */
function followAway(player) {
  const scene = state.scenes.find((s) => s.name === player.scene);
  if (scene && scene.name !== state.scene.name) enterScene(scene, player.plane);
  else if (player.plane !== state.plane) setPlane(player.plane);
}

/** Zooms in if the range of a newly selected player would be too small to see. */
function showRange(player) {
  const reach = { circle: player.range.leave_cm, patches: 0, all: 0 };
  if (player.range.mode === "patches") reach.patches = 2.5 * Math.max(...player.range.patch_cm);
  const cm = reach[player.range.mode];
  const wanted = (Math.min(camera.width, camera.height) * 0.3) / cm;
  if (cm > 0 && camera.scale * cm < 70) camera.wantedScale = wanted;
}

async function pollStats() {
  state.stats = await ask("api/stats");
  if (state.stats) panel.showStats(state.stats);
  if (state.scene) panel.showRegions(state.scene, state.stats, world.late, lookAt);
  const logic = await ask("api/workers");
  if (logic) panel.showWorkers(logic.workers);
}

function lookAt(region) {
  const r = region.rect;
  setFollow(false);
  camera.x = (r.x0 + r.x1) / 2;
  camera.z = (r.z0 + r.z1) / 2;
  camera.setScale(0.85 * Math.min(camera.width / (r.x1 - r.x0), camera.height / (r.z1 - r.z0)));
  moved();
}

function select(id) {
  if (id === state.selected) return;
  state.selected = window.purview.selected = id;
  state.player = null;
  state.playerSeenAt = performance.now();
  state.gone = false;
  setFollow(true);
  setOther(null);
  showSelected();
  panel.announce(id === null ? "No player selected" : `Player ${id} selected`);
  pollNow();
}

/** Requests the new selection at once. */
function pollNow() {
  if (state.selected !== null) pollMap().catch((error) => setConnected(false, error));
  state.dirty = true;
}

function setFollow(follow) {
  state.follow = follow;
  $("follow").setAttribute("aria-pressed", follow);
}

function toggle(name) {
  state.options[name] = !state.options[name];
  $(name).setAttribute("aria-pressed", state.options[name]);
  state.dirty = true;
}

/** Selects the next or the previous player of the plane. */
function step(by) {
  const ids = window.purview.playerIds();
  if (ids.length === 0) return;
  const at = ids.indexOf(state.selected);
  select(ids[(at + by + ids.length + (at < 0 && by < 0 ? 1 : 0)) % ids.length]);
}

function moved() {
  state.userMoved = true;
  state.dirty = true;
}

function fitAll() {
  setFollow(false);
  camera.fit();
  state.userMoved = false;
  state.dirty = true;
}

function onKey(key) {
  const commands = {
    0: fitAll, g: () => toggle("ghosts"), w: () => toggle("walls"), l: () => toggle("loads"), n: () => step(1), p: () => step(-1),
    f: () => setFollow(!state.follow), a: () => $("pair-id").focus(),
    Escape: () => (pair.other === null ? select(null) : compare(null)),
  };
  if (!commands[key]) return false;
  commands[key]();
  return true;
}

function hover(at) {
  const e = at && world.at(at.x, at.y, camera, performance.now(), 12);
  canvas.classList.toggle("over", Boolean(e) && e.kind === 0);
  if (e) {
    const region = state.scene.regions.find((r) => r.id === e.region);
    const views = e.kind === 0 ? ` · sees ${e.views}` : "";
    panel.showTip(at, `${state.scene.kinds[e.kind]?.name ?? e.kind} ${e.id} · ${region?.name ?? e.region}${views}`);
  } else {
    const door = at && state.options.walls && terrain.doorAt(camera.worldX(at.x), camera.worldZ(at.y));
    panel.showTip(door ? at : null, door || "");
  }
  const m = (cm) => (cm / 100).toFixed(0);
  panel.showWhere(at ? `${m(camera.worldX(at.x))}, ${m(camera.worldZ(at.y))} m` : "");
}

function frame(now) {
  requestAnimationFrame(frame);
  const part = world.still ? 1 : 1 - Math.exp(-(now - state.lastFrame) / 110);
  state.lastFrame = now;
  const p = follow(now, part);
  if (!state.scene || !(state.dirty || world.moving(now) || camera.wantedScale !== null)) return;
  state.dirty = false;
  draw(now, p);
}

/** The position of the selected player; the camera follows it. */
function follow(now, part) {
  if (state.selected === null || !state.player || state.gone) return null;
  const e = world.entities.get(state.selected);
  const here = state.player.scene === state.scene.name && state.player.plane === state.plane;
  if (!here) return null;
  const at = e ? { x: e.x(now), z: e.z(now) } : { x: state.player.pos.x, z: state.player.pos.z };
  if (state.follow) camera.approach(at.x, at.z, part);
  return at;
}

function draw(now, at) {
  const { scene, player, options } = state;
  drawGround(ctx, camera, scene, state.plane, options);
  const loads = options.loads && state.balance;
  window.purview.loads = loads ? drawLoads(ctx, camera, scene, state.plane, loads) : null;
  if (options.walls) terrain.draw(ctx, camera, canvas.width / camera.width, options.names);
  if (at) {
    drawRange(ctx, camera, player, scene, at.x, at.z);
    drawSight(ctx, camera, player, world, at.x, at.z, now);
  }
  const chases = drawChases(ctx, camera, world, scene, now);
  const ghosts = options.ghosts ? drawGhosts(ctx, camera, world, scene, now) : 0;
  const drawn = drawEntities(ctx, camera, world, now);
  if (loads) nameLoads(ctx, camera, scene, state.plane, loads);
  if (options.names) drawNames(ctx, camera, scene, state.plane, world.late);
  const other = at && pair.other !== null ? world.entities.get(pair.other) : null;
  if (other) drawPair(ctx, camera, other, pair.seen, at.x, at.z, now);
  window.purview.joined = Boolean(other) && pair.seen;
  if (at) drawSelected(ctx, camera, at.x, at.z, state.selected);
  panel.showScale(camera);
  Object.assign(window.purview, { drawn, ghosts, regions: scene.regions.map((r) => r.name) });
  Object.assign(window.purview, { chases: chases.lines, radii: chases.circles });
  window.purview.frames += 1;
}

function resize() {
  const density = Math.min(2, devicePixelRatio || 1);
  const box = canvas.getBoundingClientRect();
  canvas.width = Math.round(box.width * density);
  canvas.height = Math.round(box.height * density);
  ctx.setTransform(density, 0, 0, density, 0, 0);
  camera.width = Math.max(1, box.width);
  camera.height = Math.max(1, box.height);
  camera.foot = box.width < 500 ? 56 : 0;
  if (!state.userMoved && state.selected === null) camera.fit();
  state.dirty = true;
}

function begin() {
  watchErrors();
  world.still = still.matches;
  still.addEventListener("change", () => { world.still = still.matches; });
  new ResizeObserver(resize).observe(canvas);
  resize();
  listen(canvas, camera, {
    moved: (how) => { if (how === "pan") setFollow(false); moved(); },
    click: (x, y, reach, shift) => {
      const e = world.at(x, y, camera, performance.now(), reach);
      if (e && shift && state.selected !== null) compare(e.id);
      else if (e && e.kind === 0) select(e.id);
      else if (!e) select(null);
    },
    hover, key: onKey,
  });
  for (const name of Object.keys(state.options)) $(name).addEventListener("click", () => toggle(name));
  const zoom = (factor) => { camera.zoomAt(camera.width / 2, camera.height / 2, factor); moved(); };
  $("zoom-in").addEventListener("click", () => zoom(1.5));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.5));
  $("fit").addEventListener("click", fitAll);
  $("follow").addEventListener("click", () => setFollow(!state.follow));
  $("clear").addEventListener("click", () => select(null));
  $("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const id = $("find-id").value.trim();
    if (/^[0-9]+$/.test(id)) select(Number(id));
  });
  listenPair(compare);
  onWanted(() => { $("access").hidden = false; });
  $("access").addEventListener("submit", (event) => {
    event.preventDefault();
    setToken($("token").value);
    $("access").hidden = true;
  });
  $("scene").addEventListener("change", (event) => {
    const scene = state.scenes.find((s) => s.name === event.target.value);
    select(null);
    enterScene(scene, scene.planes.find((p) => p.players > 0)?.plane ?? scene.planes[0].plane);
  });
  $("plane").addEventListener("change", (event) => { select(null); setPlane(Number(event.target.value)); });
  requestAnimationFrame(frame);
  repeat(SCENES_MS, pollScenes);
  repeat(POLL_MS, pollMap);
  repeat(FIGURES_MS, pollStats);
}

begin();
