// The connection: a token, the player's session, and what the visitor wishes, on their way to the
// server. The client library keeps the session; this adds what a page in a browser needs.

import { encode, Player, PurviewError, webSocket } from "../client/index.js";

/** How fast a visitor walks, centimetres per second, if the scene allows it. */
const SPEED_CM_S = 600;

/** A connection that is silent for so long is asked whether it lives, milliseconds. */
const ASK_MS = 400;

/** A page whose timer rests for so long has slept: its connection is not to be trusted. */
const SLEPT_MS = 8_000;

/** A token is renewed when less than this is left, seconds. */
const RENEW_S = 600;

/** Between two turns, and two positions in a scene that trusts them, milliseconds. */
const TURN_MS = 200;
const MOVE_MS = 100;

const encoder = new TextEncoder();
const now = () => Math.floor(performance.now());

/** The token of this tab, which keeps the visitor the same while the page is loaded anew. */
async function token() {
  const known = JSON.parse(sessionStorage.getItem("purview-visitor") ?? "null");
  if (known && known.expires_s - Date.now() / 1_000 > RENEW_S) return known;
  const body = JSON.stringify({ token: known?.token ?? null });
  const answer = await fetch("/play/token", { method: "POST", body });
  const told = await answer.json();
  if (!answer.ok) throw new Error(`${told.error}; ${told.expected}`);
  sessionStorage.setItem("purview-visitor", JSON.stringify(told));
  return told;
}

export class Net {
  constructor({ name, scene, game, figures, page }) {
    Object.assign(this, { name, scene, game, figures, page });
    this.channel = null;
    this.heard = -Infinity;
    this.asked = -Infinity;
    this.way = [0, 0];
    this.turned = this.moved = -Infinity;
    this.isJoined = false;
  }

  async start() {
    const { gateway } = await token();
    this.player = await Player.join({
      addresses: gateway,
      token: async () => (await token()).token,
      scene: this.scene,
      crowd: true,
      schema: this.page.scenes.schema(),
      properties: { appearance: { name: this.name, party: null } },
      transport: (address, events) => this.open(address, events),
      now,
    });
    const { player, game, page } = this;
    player.on("joined", (joined, arrival) => {
      game.joined(joined);
      page.arrived();
      this.isJoined = true;
      this.arrival = arrival;
      if (arrival === "joined" && game.party !== null) this.party(game.party);
    });
    player.on("frame", (frame) => {
      const tickUs = player.welcome.tickMs * 1_000;
      game.display.frame(this.nowUs(), this.serverUs(), frame.tick * tickUs, tickUs);
    });
    player.on("message", (payload) => game.message(payload));
    player.on("reconnecting", () => page.notice("The connection broke: connecting again."));
    player.on("closed", (why) => {
      this.isJoined = false;
      page.notice(`The session has ended: ${why instanceof PurviewError ? why.message : why}. Load the page to play on.`);
    });
    game.follow(player.view, player.welcome.tickMs);
    this.watch();
  }

  /** A WebSocket whose messages are counted. */
  open(address, events) {
    const connect = webSocket();
    const channel = connect(address, {
      ...events,
      message: (bytes) => {
        this.heard = now();
        this.figures.received(this.heard, bytes.length);
        this.game.display.pong(this.nowUs());
        events.message(bytes);
        // A hidden page has a timer a second, later one a minute: messages keep the session alive.
        if (document.hidden) this.player?.update();
      },
    });
    this.channel = { channel, events };
    return channel;
  }

  /** Asks silent connections, and gives up one that slept along with the machine. */
  watch() {
    let [before, wall] = [now(), Date.now()];
    setInterval(() => {
      const [slept, rested] = [Date.now() - wall, now() - before];
      [before, wall] = [now(), Date.now()];
      const isSilent = now() - this.heard > SLEPT_MS;
      if (isSilent && Math.max(slept, rested) > SLEPT_MS) this.reconnect("this machine slept");
      else this.ask();
    }, 250);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.stand();
      else this.ask();
    });
  }

  ask() {
    const at = now();
    if (!this.player.isConnected || at - this.heard < ASK_MS || at - this.asked < ASK_MS) return;
    this.asked = at;
    this.channel.channel.send(encode({ type: "Ping", nonce: at }));
  }

  /** Ends the connection and lets the player resume on a new one. */
  reconnect(why) {
    if (!this.player.isConnected) return;
    const { channel, events } = this.channel;
    channel.close();
    events.closed(null, why);
  }

  /** The client's clock, and the server's by estimate, microseconds. */
  nowUs() {
    return Math.floor(performance.now() * 1_000);
  }

  serverUs() {
    const { player } = this;
    return player ? this.nowUs() + (player.serverNow() - player.now()) * 1_000 : 0;
  }

  latencyMs() {
    const half = this.player.clock.delayMs(this.player.now());
    return half === null ? null : half * 2;
  }

  /** The player's own position, as it is drawn. */
  own() {
    return this.player.shown();
  }

  /** Walks in a direction, or stands. */
  walk([x, z]) {
    const { player } = this;
    if (!player.isConnected) return;
    if (!player.walker) return this.trust([x, z]);
    const [bx, bz] = this.way;
    if (Math.hypot(x - bx, z - bz) < 0.03) return;
    this.way = [x, z];
    const speed = Math.round(SPEED_CM_S * Math.min(Math.hypot(x, z), 1));
    if (speed === 0) {
      player.stop();
      return;
    }
    player.walk(Math.round(x * 1_000), Math.round(z * 1_000), speed);
    this.face(x, z);
  }

  stand() {
    this.way = [0, 0];
    this.player?.stop();
  }

  face(x, z) {
    const at = now();
    if (at - this.turned < TURN_MS) return;
    this.turned = at;
    void this.player.face(Math.atan2(z, x) * 32_768 / Math.PI);
  }

  /** The same in a scene that trusts positions. */
  trust([x, z]) {
    const at = now();
    if ((x === 0 && z === 0) || at - this.moved < MOVE_MS) return;
    this.moved = at;
    const here = this.player.position();
    const [width, depth] = this.game.size;
    const along = (from, way, size) =>
      Math.max(0, Math.min(Math.round(from + way * SPEED_CM_S * MOVE_MS / 1_000), size - 1));
    void this.player.moveTo({ x: along(here.x, x, width), y: here.y, z: along(here.z, z, depth) });
    this.face(x, z);
  }

  /** Asks the game for something: the rules decide. */
  act(text) {
    void this.player.act(encoder.encode(text));
  }

  /** Joins a party, and shows that to others. */
  party(party) {
    this.act(`party ${party}`);
    void this.player.set("appearance", { name: this.name, party });
  }
}
