// What the page says of itself, as plain values: for tests, and for visitors who look behind it.

/** Errors of scripts, promises and the content policy. */
const errors = [];

addEventListener("error", (event) => errors.push(String(event.message)));
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));

export function probe(page) {
  const { game, net } = page;
  const drawn = (entity) => {
    const pos = game.display.position(entity.id) ?? entity.pos;
    const { id, kindName: kind } = entity;
    return { id, kind, name: game.title(entity), hp: game.hp(entity), party: game.partyOf(entity), x: pos.x, z: pos.z };
  };
  return {
    errors,
    get isJoined() { return net.isJoined; },
    get me() {
      if (!game.view) return null;
      const { id } = game.view.me;
      const region = page.scenes.region(game.scene, game.plane, net.own())?.id ?? null;
      const [hp, gold, party, plane] = [game.hp(game.view.me), game.gold(), game.party, game.plane];
      return { id, ...net.own(), hp, gold, party, plane, region, falls: game.falls };
    },
    get entities() { return game.view ? [...game.view].map(drawn) : []; },
    get figures() { return page.read ?? null; },
    toJSON() { return { errors, me: this.me, entities: this.entities, figures: this.figures }; },
    net,
    page,
  };
}

/** Before the visitor has given a name. */
export function early() {
  return { errors, isJoined: false, me: null, entities: [], figures: null };
}
