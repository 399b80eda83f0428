"""The rules of `hunt` over gRPC: monsters chase players and bite, players hit monsters, a dead monster leaves
gold, and one player has it. Parties talk, and enter dungeons of their own.

    python hunt.py ADDRESS [TOKEN [CA]]

The configuration is examples/hunt/hunt.toml with `logic.listen`; TOKEN is that of `logic.token_file`, CA the
authority of the server's certificate.

Whatever must last is a property, so that it outlives this worker. Clients ask by actions that are short
texts, such as `hit 17`. What reads a property and sets it is done by the region of the entity alone, while the entity is
as this worker was told: others ask for it by an action of the entity, which is done once.
"""

import math
import random
import sys

from purview.logic.v1 import logic_pb2 as pb
from purview_worker import Worker

PLAYER, MONSTER, DROP, LAIR = 0, 1, 2, 3
HP, GOLD, TAKER, TAKEN, MINTED = 1, 2, 3, 4, 5
PLAYER_HP, MONSTER_HP, HIT, BITE, PRIZE = 100, 30, 10, 5, 10
REACH_CM, STEP_CM, MONSTERS, LAIR_TICKS, DUNGEONS = 300, 30, 5, 50, 1_000
TAKEN_TICKS, MAX_TAKEN, BITE_TICKS, AGAIN_TICKS = 600, 40, 5, 100


def distance(a, b):
    return math.hypot(a.x - b.x, a.z - b.z) if a.plane == b.plane else math.inf


class Hunt(Worker):
    def forget(self):
        super().forget()
        self.steps = {}  # gold that changes hands: drop and taker, or player and drop it has taken

    def here(self, region, kind):
        return [e for e in self.entities.values() if e.region == region and e.kind == kind]

    def get(self, entity, prop, default=0):
        return entity.properties.get(prop) or default

    def on_opened(self):
        print("ready", flush=True)

    def on_started(self, region):
        for entity in [e for e in self.entities.values() if e.region == region]:
            self.on_entered(entity)

    def on_entered(self, entity):
        if entity.kind == PLAYER and not self.get(entity, HP):
            self.set(entity.id, HP, PLAYER_HP, as_told=True)
        others = [drop for drop, _ in self.get(entity, TAKEN, [])]
        for other in others + [self.get(entity, TAKER)] * bool(self.get(entity, TAKER)):
            self.steps[entity.id, other] = self.mark()
        if entity.kind == PLAYER and entity.plane >= DUNGEONS:
            self.fill_dungeon(entity)

    def on_left(self, entity, ended):
        for key in [key for key in self.steps if key[0] == entity.id]:
            done = self.steps.pop(key) is None
            # A player that leaves the game takes its gold along.
            if entity.kind == PLAYER and ended and not done:
                self.give(key[1], despawn=pb.Despawn())

    def on_acted(self, entity, act):
        verb, _, rest = act.payload.decode(errors="replace").partition(" ")
        is_here = entity and entity.region == self.answering
        if act.by_logic and is_here:
            self.is_told(entity, verb, rest.split(" "))
        elif act.by_logic and verb in ("hurt", "claim", "gold"):
            self.give(act.entity, act=pb.Act(payload=act.payload))  # it has gone elsewhere meanwhile
        elif is_here and entity.kind == PLAYER:
            self.client_asks(entity, verb, rest)

    def client_asks(self, player, verb, rest):
        """A client may ask for anything: the rules decide."""
        number = int(rest) if rest.isdecimal() else 0
        party = player.bonds[0] if player.bonds else None
        if verb == "hit" and self.reaches(player, number, MONSTER):
            self.tell(number, f"hurt {HIT}")
        elif verb == "take" and self.reaches(player, number, DROP):
            self.tell(number, f"claim {player.id}")
        elif verb == "party":
            player.bonds = [pb.Bond(kind="party", group=number % 1_000)]
            self.give_subject(player.subject, set_bonds=pb.SetBonds(bonds=player.bonds))
        elif verb == "say" and party:
            self.give(0, tell_bond=pb.TellBond(bond=party, payload=rest.encode()))
        elif verb == "enter" and party:
            self.jump(player, DUNGEONS + party.group)
        elif verb == "leave":
            self.jump(player, 0)

    def reaches(self, player, id, kind):
        other = self.entities.get(id)
        return other and other.kind == kind and distance(player, other) <= REACH_CM

    def jump(self, player, plane, to=None):
        at = pb.Position(x=(to or player).x, z=(to or player).z)
        self.give(player.id, teleport=pb.Teleport(plane=plane, position=at))

    def tell(self, id, what):
        """Tells the region of an entity something; at once if that is the one that is telling."""
        entity = self.entities.get(id)
        if entity and entity.region == self.answering:
            verb, _, rest = what.partition(" ")
            return self.is_told(entity, verb, rest.split(" "))
        return self.give(id, act=pb.Act(payload=what.encode()))

    def is_told(self, entity, verb, words):
        numbers = [int(word) for word in words if word.isdecimal()]
        if verb == "hurt" and entity.kind in (MONSTER, PLAYER) and numbers:
            self.is_hurt(entity, numbers[0])
        elif verb == "claim" and entity.kind == DROP and numbers and not self.get(entity, TAKER):
            self.steps[entity.id, numbers[0]] = self.set(entity.id, TAKER, numbers[0], as_told=True)
        elif verb == "gold" and entity.kind == PLAYER and len(numbers) == 2:
            self.receives(entity, *numbers)

    def is_hurt(self, entity, points):
        left = self.get(entity, HP) - points
        if entity.kind == MONSTER and left <= 0:
            self.remove(entity)
            at = pb.Position(x=entity.x, z=entity.z)
            self.create(DROP, entity.plane, at, [(GOLD, self.get(entity, GOLD))], together=True)
        elif entity.kind == PLAYER and left <= 0:
            self.falls(entity)
        else:
            self.set(entity.id, HP, left, as_told=True)

    def falls(self, player):
        """A player who falls stands up again, at the lair of the region."""
        self.set(player.id, HP, PLAYER_HP, as_told=True)
        self.give(player.id, act=pb.Act(payload=b"falls"), together=True)
        self.give(player.id, tell=pb.Tell(payload=b"you fell"), together=True)
        lairs = self.here(player.region, LAIR)
        lair = min(lairs, key=lambda lair: lair.id, default=None)
        if lair:
            self.jump(player, 0, lair)

    def create(self, kind, plane, at, numbers, **terms):
        properties = [pb.Property(id=id, value=msgpack_int(n)) for id, n in numbers]
        spawn = pb.Spawn(kind=kind, plane=plane, position=at, properties=properties)
        self.give(self.new_id(), spawn=spawn, **terms)

    def remove(self, entity, **terms):
        self.give(entity.id, despawn=pb.Despawn(), as_told=True, **terms)
        del self.entities[entity.id]

    def receives(self, player, drop, gold):
        """The player has the gold of a drop, once: the drop may say so again."""
        taken, now = self.get(player, TAKEN, []), self.regions[player.region].tick
        if all(of != drop for of, _ in taken):
            taken = [t for t in taken if t[1] + TAKEN_TICKS > now]
            if len(taken) >= MAX_TAKEN:
                return
            self.set(player.id, GOLD, self.get(player, GOLD) + gold, as_told=True)
            self.set(player.id, TAKEN, taken + [[drop, now]], together=True)
        self.steps[player.id, drop] = self.mark()

    def gold_goes_on(self, region):
        """Gold goes by steps. Each waits until the death of a machine cannot undo the one before it."""
        now = self.regions[region].tick
        for (id, other), since in list(self.steps.items()):
            entity = self.entities.get(id)
            if not entity or entity.region != region or since is None:
                continue
            if now >= since + AGAIN_TICKS if isinstance(since, int) else self.is_durable(since):
                self.steps[id, other] = now if entity.kind == DROP else None
                if entity.kind == DROP and self.get(entity, TAKER) == other:
                    self.tell(other, f"gold {id} {self.get(entity, GOLD)}")
                elif other in [drop for drop, _ in self.get(entity, TAKEN, [])]:
                    self.give(other, despawn=pb.Despawn())

    def on_refused(self, given, refusal):
        words = given.command.act.payload.split(b" ") if given else [b""]
        drop = self.entities.get(int(words[1])) if words[0] == b"gold" else None
        if drop and drop.region is not None and refusal.reason == pb.REASON_UNKNOWN_ENTITY:
            # The player is in the scene no more: others may take the drop.
            self.steps.pop((drop.id, given.command.entity), None)
            self.set(drop.id, TAKER, 0)

    def on_tick(self, region):
        for monster in self.here(region, MONSTER):
            prey = [self.entities[id] for id in monster.sighted if id in self.entities]
            if not prey:
                continue
            nearest = min(prey, key=lambda other: (distance(monster, other), other.id))
            far = distance(monster, nearest)
            if far <= REACH_CM:
                if (self.regions[region].tick + monster.id) % BITE_TICKS == 0:
                    self.give(monster.id, act=pb.Act(payload=f"bite {nearest.id}".encode()))
                    self.tell(nearest.id, f"hurt {BITE}")
            elif far < math.inf:
                monster.x += int((nearest.x - monster.x) * STEP_CM / far)
                monster.z += int((nearest.z - monster.z) * STEP_CM / far)
                at = pb.Position(x=monster.x, z=monster.z)
                self.give(monster.id, place=pb.Place(position=at))
        self.gold_goes_on(region)
        tick = self.regions[region].tick
        if tick % LAIR_TICKS == region % LAIR_TICKS and self.has_ground(region):
            self.lair(region, self.regions[region].rect)

    def has_ground(self, region):
        """A region that a change of the layout has ended has none any more."""
        rect = self.regions[region].rect
        return rect.x0 < rect.x1

    def lair(self, region, rect):
        """A lair sends monsters while there are too few, and dungeons without players end."""
        lair = min(self.here(region, LAIR), key=lambda e: e.id, default=None)
        if not lair:
            middle = pb.Position(x=(rect.x0 + rect.x1) // 2, z=(rect.z0 + rect.z1) // 2)
            return self.create(LAIR, 0, middle, [])
        for _ in range(sum(e.plane == 0 for e in self.here(region, MONSTER)), MONSTERS):
            x, z = random.randrange(rect.x0, rect.x1), random.randrange(rect.z0, rect.z1)
            self.send_monster(lair, 0, x, z)
        planes = {e.plane for e in self.here(region, PLAYER)}
        for left in self.here(region, MONSTER) + self.here(region, DROP):
            if left.plane >= DUNGEONS and left.plane not in planes and not self.get(left, TAKER):
                minted = self.get(lair, MINTED) - self.get(left, GOLD)
                self.set(lair.id, MINTED, minted, as_told=True)
                self.remove(left, together=True)

    def send_monster(self, lair, plane, x, z):
        self.set(lair.id, MINTED, self.get(lair, MINTED) + PRIZE, as_told=True)
        at = pb.Position(x=x, z=z)
        self.create(MONSTER, plane, at, [(HP, MONSTER_HP), (GOLD, PRIZE)], together=True)

    def fill_dungeon(self, player):
        """A party's first player in a dungeon finds monsters there."""
        lair = min(self.here(player.region, LAIR), key=lambda e: e.id, default=None)
        if not self.has_ground(player.region):
            return
        if lair and all(e.plane != player.plane for e in self.here(player.region, MONSTER)):
            for n in range(MONSTERS):
                x = min(player.x + 500 + 200 * n, self.regions[player.region].rect.x1 - 1)
                self.send_monster(lair, player.plane, x, player.z)


def msgpack_int(n):
    import msgpack
    return msgpack.packb(n)


if __name__ == "__main__":
    worker = Hunt(sys.argv[1], "wood", "hunt.py", *sys.argv[2:4])
    worker.run()
