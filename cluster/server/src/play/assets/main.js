// The page: puts the parts together, and draws picture after picture.

import { beyond } from "../client/index.js";
import { Scenes } from "./borders.js";
import { Drawing } from "./draw.js";
import { Figures, texts } from "./figures.js";
import { Game } from "./game.js";
import { askName, Hud } from "./hud.js";
import { Input } from "./input.js";
import { Net } from "./net.js";
import { early, probe } from "./probe.js";

const by = (id) => document.getElementById(id);
const isCalm = matchMedia("(prefers-reduced-motion: reduce)");

/** The numbers of parties end here; visitors begin new ones from 100 on. */
const PARTIES = 1_000;

class Page {
  constructor(scenes, name) {
    this.scenes = scenes;
    this.drawing = new Drawing(by("world"));
    this.figures = new Figures();
    this.hud = new Hud({ say: (to, text) => this.say(to, text), act: (act) => this.act(act) });
    const tell = {
      line: (who, text, kind) => this.hud.line(who, text, kind),
      notice: (text) => this.notice(text, 3_000),
      changed: () => this.self(),
      bitten: () => { this.bitten = performance.now(); },
    };
    this.game = new Game({ scenes, name, tell });
    this.input = new Input(by("world"), {
      stick: by("stick"),
      act: (act) => this.act(act),
      aim: (x, y) => this.aim(x, y),
      zoom: (factor) => this.drawing.zoomBy(factor),
    });
    this.net = new Net({ name, scene: scenes.join, game: this.game, figures: this.figures, page: this });
    this.showsBorders = false;
    this.bitten = -Infinity;
    this.eye = null;
  }

  async start() {
    await this.net.start();
    this.hud.show();
    // A small screen is for the world first.
    if (matchMedia("(max-width: 700px)").matches) this.hud.toggle("figures", "figures");
    requestAnimationFrame((now) => this.picture(now));
    setInterval(() => this.second(), 1_000);
  }

  /** The player has joined, resumed or teleported: nothing of the picture before is true. */
  arrived() {
    this.eye = null;
    this.notice(null);
    this.askRegions();
  }

  notice(text, lastsMs = 0) {
    clearTimeout(this.noticeEnds);
    this.hud.notice(text);
    if (lastsMs) this.noticeEnds = setTimeout(() => this.hud.notice(null), lastsMs);
  }

  say(to, text) {
    const { game, net } = this;
    if (to === "say" && game.party === null) {
      this.hud.line(null, "You are in no party yet: press P.", "event");
      return;
    }
    net.act(to === "say" ? `say ${game.name}: ${text}` : `chat ${text}`);
    if (to === "chat") {
      this.hud.line(game.name, text, "near");
      game.float(game.view.me, text.slice(0, 40), "#ffffff");
    }
  }

  act(name) {
    const { game, net } = this;
    if (!game.view) return;
    const at = net.own();
    switch (name) {
      case "hit": return this.reach("monster", at, (target) => net.act(`hit ${target.id}`));
      case "take": return this.reach("drop", at, (target) => net.act(`take ${target.id}`));
      case "chat": return this.hud.chat();
      case "party": return this.joinParty(at);
      case "dungeon":
        if (game.party === null) this.joinParty(at);
        return net.act(game.isInDungeon ? "leave" : "enter");
      case "borders":
        this.showsBorders = this.hud.toggle("borders", "region");
        return this.askRegions();
      case "figures": return this.hud.toggle("figures", "figures");
    }
  }

  reach(kind, at, act) {
    const target = this.game.nearest(kind, at);
    if (target) act(target);
    else this.notice(kind === "drop" ? "No gold is in reach." : "No monster is in reach.", 700);
  }

  /** Joins the party of the nearest visitor who is in one, else a new one. */
  joinParty(at) {
    const { game, net } = this;
    game.party = game.nearestParty(at) ?? 100 + game.view.me.id % (PARTIES - 100);
    net.party(game.party);
    this.hud.line(null, `You are in party ${game.party}.`, "event");
    this.self();
  }

  /** A click on an entity acts on it. Returns whether there is one. */
  aim(x, y) {
    const { game, net } = this;
    if (!game.view) return false;
    const at = this.drawing.placeAt(x, y);
    const reach = 26 / this.drawing.scale;
    const near = (kind, verb) => {
      const target = game.nearest(kind, at, reach);
      if (target) net.act(`${verb} ${target.id}`);
      return target !== null;
    };
    return near("drop", "take") || near("monster", "hit");
  }

  /** Draws a picture and asks for the next one. */
  picture(now) {
    requestAnimationFrame((next) => this.picture(next));
    const { game, net, figures, drawing } = this;
    if (!net.isJoined || document.hidden) return;
    const begun = performance.now();
    net.walk(this.input.direction());
    const own = net.own();
    game.display.advance(net.nowUs(), net.serverUs());
    for (const off of game.errors()) figures.drawn(off);
    const home = this.showsBorders ? this.scenes.region(game.scene, game.plane, own)?.id ?? null : null;
    const regions = this.showsBorders ? this.scenes.regions(game.scene, game.plane, home) : null;
    // What another region owns is a ghost in the region of the player.
    const isGhost = (pos) => home !== null &&
      !regions.some((r) => r.isHome && pos.x >= r.x0 && pos.x < r.x1 && pos.z >= r.z0 && pos.z < r.z1);
    const { entities, texts: floats } = game.picture(begun, own, isGhost);
    const [width, depth] = game.size;
    const players = entities.filter((entity) => ["player", "friend", "self"].includes(entity.look));
    const dots = game.view.crowd ? beyond(game.view.crowd, players) : [];
    drawing.draw({ eye: this.look(own), size: { width, depth }, entities, dots, borders: regions, texts: floats });
    const isHurt = begun - this.bitten < 160;
    if (isHurt && !isCalm.matches) drawing.flash();
    [figures.entities, figures.dots, figures.delayMs] =
      [game.view.size, dots.length, game.display.clock.delayUs() / 1_000];
    figures.frame(now, performance.now() - begun);
  }

  /** Where the camera looks: at the player, a little late unless the visitor wants little motion. */
  look(own) {
    const before = this.eye;
    const far = before && Math.hypot(own.x - before.x, own.z - before.z);
    if (!before || isCalm.matches || far > 600) this.eye = { x: own.x, z: own.z };
    else this.eye = { x: before.x + (own.x - before.x) * 0.25, z: before.z + (own.z - before.z) * 0.25 };
    return this.eye;
  }

  async askRegions() {
    try {
      await this.scenes.refresh();
    } catch {
      // The page goes on with what it knows; the next second asks again.
    }
  }

  self() {
    const { game } = this;
    if (!game.view) return;
    const hp = game.hp(game.view.me) ?? 100;
    const place = `${game.scene}${game.isInDungeon ? ", dungeon" : ""}`;
    this.hud.self({ name: game.name, place, hp, hpMax: 100, gold: game.gold(), party: game.party });
  }

  second() {
    const { game, net, figures } = this;
    if (!game.view) return;
    this.self();
    figures.latencyMs = net.latencyMs();
    this.read = figures.read(performance.now());
    this.hud.fields(texts(this.read));
    if (!this.showsBorders) return;
    this.askRegions();
    const region = this.scenes.region(game.scene, game.plane, net.own());
    this.hud.region(region ? region.text : "");
  }
}

globalThis.purview = early();
const scenes = await Scenes.load();
const page = new Page(scenes, await askName());
globalThis.purview = probe(page);
try {
  await page.start();
} catch (error) {
  page.notice(`The page cannot join: ${error.message}`);
}
