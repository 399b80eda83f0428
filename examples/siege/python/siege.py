"""The rules of `siege` over gRPC: two guilds are at war. The blue guild breaks the gate of the red guild's city, and
a watchtower warns the red guild. A player that falls is a point for the other guild. Parties talk.

    python siege.py ADDRESS [TOKEN [CA]]

The configuration is examples/siege/siege.toml with `logic.listen`; TOKEN is that of `logic.token_file`, CA the
authority of the server's certificate.

Clients ask by actions that are short texts: `strike`, `hit`, `open`, `party 7`, `say hello`. What reads a property
and sets it is done by the region of the entity alone: others ask for it by an action of the entity, which is done once.
"""

import math
import sys

from purview.logic.v1 import logic_pb2 as pb
from purview_worker import Worker

PLAYER, GATE, WATCHTOWER, BANNER = 0, 1, 2, 3
HP, FALLS, SCORE = 1, 2, 3
RED, BLUE = 1, 2
CAMPS = {RED: (21_000, 6_600), BLUE: (3_600, 6_600)}
BANNERS = {RED: "red banner", BLUE: "blue banner"}
PLAYER_HP, BLOW, FIGHT_MS, ALARM_TICKS = 50, 10, 5_000, 50


def group(entity, kind):
    """The group of an entity's first bond of a kind."""
    return next((bond.group for bond in entity.bonds if bond.kind == kind), None)


def bond(kind, number):
    return pb.Bond(kind=kind, group=number)


class Siege(Worker):
    def forget(self):
        super().forget()
        self.alarms = {}  # when each watchtower has last given the alarm
        self.seen = {}  # whom each watchtower has had in sight

    def on_opened(self):
        print("ready", flush=True)

    def on_started(self, region):
        self.declare_war()
        for entity in [e for e in self.entities.values() if e.region == region]:
            self.comes(entity)

    def declare_war(self):
        enemies = pb.SetRelation(kind="guild", group=RED, other=BLUE, relation=pb.RELATION_ENEMY)
        self.give(0, set_relation=enemies)

    def on_refused(self, given, refusal):
        if given and given.command.HasField("set_relation"):
            self.declare_war()

    def on_entered(self, entity):
        self.comes(entity)

    def comes(self, player):
        """A player is in the region. One that is new begins at the camp of its guild."""
        if player.kind != PLAYER:
            return
        if not player.properties.get(HP):
            self.set(player.id, HP, PLAYER_HP)
            self.goes_to_camp(player, group(player, "guild") or self.guild_of(player))
        if group(player, "guild") is None:
            player.bonds = [bond("guild", self.guild_of(player))]
            self.give(player.id, set_bonds=pb.SetBonds(bonds=player.bonds))

    def guild_of(self, player):
        """By the token; players whose token names no guild are shared out."""
        return {"red": RED, "blue": BLUE}.get(player.claims.get("guild"), RED + player.id % 2)

    def goes_to_camp(self, player, guild):
        x, z = CAMPS[guild]
        at = pb.Position(x=x + player.id // 2 % 10 * 150, z=z + player.id // 20 % 10 * 150)
        self.give(player.id, teleport=pb.Teleport(plane=player.plane, position=at))

    def on_acted(self, entity, act):
        verb, _, rest = act.payload.decode(errors="replace").partition(" ")
        is_here = entity and entity.region == self.answering
        if act.by_logic and is_here:
            self.is_told(entity, verb, rest)
        elif act.by_logic and verb in ("struck", "opened", "point"):
            self.give(act.entity, act=pb.Act(payload=act.payload))  # it has gone elsewhere meanwhile
        elif is_here and entity.kind == PLAYER and group(entity, "guild"):
            self.client_asks(entity, group(entity, "guild"), verb, rest)

    def client_asks(self, me, guild, verb, rest):
        """A client may ask for anything: the rules decide."""
        party = group(me, "party")
        if verb == "strike":
            enemy = self.nearest(me, PLAYER, lambda e: group(e, "guild") not in (None, guild))
            self.tell(enemy, f"struck {BLOW}")
        elif verb == "hit" and guild == BLUE:
            self.tell(self.nearest(me, GATE), f"struck {BLOW}")
        elif verb == "open" and guild == RED:
            self.tell(self.nearest(me, GATE), "opened")
        elif verb == "party":
            number = rest.split(" ")[0]
            me.bonds = [bond("party", int(number) if number.isdecimal() else 0), bond("guild", guild)]
            self.give(me.id, set_bonds=pb.SetBonds(bonds=me.bonds))
        elif verb == "say" and party is not None:
            self.give(0, tell_bond=pb.TellBond(bond=bond("party", party), payload=rest.encode()))

    def nearest(self, me, kind, is_meant=lambda _: True):
        """The nearest entity of a kind that a player has in reach: players watch as far as they reach."""
        reached = [self.entities[id] for id in me.sighted if id in self.entities]
        meant = [e for e in reached if e.kind == kind and is_meant(e)]
        return min(meant, key=lambda e: (math.hypot(e.x - me.x, e.z - me.z), e.id), default=None)

    def tell(self, entity, what):
        """Tells the region of an entity something; at once if that is the one that is telling."""
        if entity and entity.region == self.answering:
            verb, _, rest = what.partition(" ")
            self.is_told(entity, verb, rest)
        elif entity:
            self.give(entity.id, held=True, act=pb.Act(payload=what.encode()))

    def is_told(self, entity, verb, rest):
        left = entity.properties.get(HP, 0) - (int(rest) if rest.isdecimal() else 0)
        if entity.kind == GATE and verb == "opened":
            self.gives_way(entity, b"the gate is open")
        elif entity.kind == GATE and verb == "struck" and left <= 0:
            self.gives_way(entity, b"the gate is broken")
        elif entity.kind == PLAYER and verb == "struck" and left <= 0:
            self.falls(entity)
        elif verb == "struck":
            self.set(entity.id, HP, left)
            if entity.kind == PLAYER:
                self.give(entity.id, hold=pb.Hold(lasts_ms=FIGHT_MS))
        elif entity.kind == BANNER and verb == "point":
            self.set(entity.id, SCORE, entity.properties.get(SCORE, 0) + 1)

    def gives_way(self, gate, text):
        """The way is free until the gate is back."""
        self.give(gate.id, despawn=pb.Despawn())
        del self.entities[gate.id]
        self.give(0, announce=pb.Announce(plane=gate.plane, payload=text))

    def falls(self, me):
        """The other guild has a point, and the player begins again at its camp."""
        guild = group(me, "guild")
        self.set(me.id, FALLS, me.properties.get(FALLS, 0) + 1)
        self.set(me.id, HP, PLAYER_HP)
        self.give(me.id, tell=pb.Tell(payload=b"you fell"))
        self.goes_to_camp(me, guild)
        # The banner may be in a region of another worker.
        banner = BANNERS[BLUE if guild == RED else RED]
        self.give_content(0, banner, held=True, act=pb.Act(payload=b"point"))

    def on_tick(self, region):
        for tower in [e for e in self.entities.values() if e.region == region and e.kind == WATCHTOWER]:
            seen, before = tower.sighted, self.seen.get(tower.id, set())
            self.seen[tower.id] = set(seen)
            self.gives_alarm(tower, sorted(seen - before), self.regions[region].tick)

    def gives_alarm(self, tower, seen, now):
        """A watchtower warns the red guild of the blue one."""
        enemies = [self.entities[id] for id in seen if id in self.entities]
        enemies = [e for e in enemies if group(e, "guild") == BLUE]
        if enemies and now >= self.alarms.get(tower.id, -ALARM_TICKS) + ALARM_TICKS:
            text = f"alarm: {enemies[0].x // 100} m, {enemies[0].z // 100} m"
            self.give(0, tell_bond=pb.TellBond(bond=bond("guild", RED), payload=text.encode()))
            self.alarms[tower.id] = now


if __name__ == "__main__":
    worker = Siege(sys.argv[1], "city", "siege.py", *sys.argv[2:4])
    worker.run()
