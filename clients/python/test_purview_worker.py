"""What a worker makes of what it is told, without a server: python -m unittest test_purview_worker"""

import unittest

import msgpack
from purview.logic.v1 import logic_pb2 as pb
from purview_worker import Worker

PLAYER, LAIR, COUNT = 0, 3, 5


class Counts(Worker):
    """Counts in a property of the lair who comes."""

    def forget(self):
        super().forget()
        self.heard, self.requests = [], self

    def put(self, request):
        self.last = request

    def on_started(self, region):
        self.heard.append(f"started {region}")

    def on_entered(self, entity):
        self.heard.append(f"entered {entity.id}")
        if entity.kind == PLAYER:
            self.set(LAIR, COUNT, self.entities[LAIR].properties[COUNT] + 1, as_told=True)

    def on_left(self, entity, ended):
        self.heard.append(f"left {entity.id}")

    def on_tick(self, region):
        self.heard.append("tick")


def entity(id, kind, epoch=1, count=None):
    values = [] if count is None else [pb.Property(id=COUNT, value=msgpack.packb(count))]
    return pb.Entity(id=id, kind=kind, epoch=epoch, position=pb.Position(), properties=values)


class Told(unittest.TestCase):
    def setUp(self):
        self.worker = Counts("nowhere", "wood", "counts")
        self.seq = {}
        self.tell(0, entities=[entity(LAIR, LAIR, count=0)], rect=pb.Rect(x1=100))

    def tell(self, region, **what):
        self.seq[region] = self.seq.get(region, 0) + 1
        lease = pb.Lease(region=region, epoch=1, number=1)
        self.worker.take_told(pb.Told(lease=lease, seq=self.seq[region], **what))
        return [(c.entity, c.epoch, msgpack.unpackb(c.set_property.value)) for c in self.worker.last.answer.commands]

    def counted(self, count):
        return [pb.Changed(entity=LAIR, properties=[pb.Property(id=COUNT, value=msgpack.packb(count))])]

    def test_the_game_hears_of_an_entity_when_all_is_applied(self):
        self.assertEqual(self.tell(0, entities=[entity(10, PLAYER)]), [(LAIR, 1, 1)])
        # What the region has made of the answer is told with the next player, and is no news.
        self.assertEqual(self.tell(0, entities=[entity(11, PLAYER)], changed=self.counted(1)), [(LAIR, 1, 2)])
        self.assertEqual(self.tell(0, entities=[entity(12, PLAYER)], changed=self.counted(2)), [(LAIR, 1, 3)])

    def test_a_difference_in_parts_is_told_as_one(self):
        self.worker.heard.clear()
        self.assertEqual(self.tell(0, entities=[entity(10, PLAYER), entity(11, PLAYER)], more=True), [])
        self.assertEqual(self.worker.heard, [])
        self.assertEqual(self.tell(0, gone=[11], ended=[11], changed=self.counted(7)), [(LAIR, 1, 8)])
        self.assertEqual(self.worker.heard, ["entered 10", "tick"])

    def test_an_entity_leaves_before_it_enters_elsewhere(self):
        self.tell(1, rect=pb.Rect(x0=100, x1=200))
        self.tell(0, entities=[entity(10, PLAYER)])
        self.worker.heard.clear()
        self.tell(1, entities=[entity(10, PLAYER, epoch=2)])
        self.tell(0, gone=[10])
        self.assertEqual(self.worker.heard, ["left 10", "entered 10", "tick", "tick"])
        self.assertEqual(self.worker.entities[10].region, 1)

    def test_a_region_that_is_lost_takes_its_entities_along(self):
        self.tell(0, entities=[entity(10, PLAYER)])
        self.worker.heard.clear()
        self.worker.take_ended(pb.Ended(lease=pb.Lease(region=0, epoch=1, number=1)))
        self.assertEqual(sorted(self.worker.heard), ["left 10", "left 3"])
        self.assertEqual(self.worker.entities, {})


if __name__ == "__main__":
    unittest.main()
