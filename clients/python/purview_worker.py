"""A logic worker: connects to a server, keeps what it is told, and delivers commands once.

A game derives from `Worker`, overrides the methods whose names begin with `on_`, and calls `give` and `set`.
clients/python/README.md says how; the protocol is in proto/purview/logic/v1/logic.proto.
"""

import itertools
import queue
import time
from collections import defaultdict, deque

import grpc
import msgpack
from purview.logic.v1 import logic_pb2 as pb
from purview.logic.v1 import logic_pb2_grpc as rpc

RESEND_TICKS = 30


class Entity:
    """An entity as it was told last. `region` is None if it lives in a region of another worker."""

    def __init__(self, told, region):
        self.id, self.kind, self.plane, self.region = told.id, told.kind, told.plane, region
        self.x, self.y, self.z = told.position.x, told.position.y, told.position.z
        self.properties = {p.id: msgpack.unpackb(p.value) for p in told.properties}
        self.sighted, self.bonds = set(told.sighted), list(told.bonds)


class Sent:
    """A command. `applied`: the region and the tick, None: not yet; `durable`: it need not be kept."""

    def __init__(self, command, tick):
        self.command, self.tick, self.applied, self.durable = command, tick, None, False


class Worker:
    def __init__(self, address, scene, name, token=None, ca=None):
        """`token`: what the server's `logic.token_file` has; `ca`: the authority of its certificate, a PEM file."""
        self.address, self.scene, self.name, self.ca = address, scene, name, ca
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.session, self.received, self.tick = b"", 0, 0
        self.forget()

    def forget(self):
        self.entities, self.leases, self.ticks, self.saved = {}, {}, {}, {}
        self.sent = defaultdict(deque)  # by entity: commands that are not durable
        self.next = defaultdict(lambda: 1)  # by entity: the next number
        self.known = {}  # by entity: the last number that was applied
        self.own = {}  # by entity and property: the last command that sets it
        self.queue = defaultdict(list)  # by region: commands for its next batch, and whether each is new
        self.batches = defaultdict(dict)  # by region: the new commands of the last batches
        self.answering = None  # the region that tells of an action
        self.planes = {}  # private planes that are open: who may come
        self.free_ids, self.used_ids = iter(()), 0

    # What a game overrides.
    def on_started(self, region): "A region is this worker's from now on; its entities are known."
    def on_entered(self, entity): "An entity lives in a region of this worker from now on, or has teleported."
    def on_left(self, entity, left): "An entity does not any more."
    def on_acted(self, entity, act): "An entity has acted."
    def on_refused(self, sent, result): "A command was refused for good."
    def on_tick(self, region): "All that has happened in a tick of a region was told."

    # What a game calls.
    def new_id(self):
        self.used_ids += 1
        if self.used_ids % 32_768 == 0:
            self.requests.put(pb.Request(more_ids=pb.MoreIds()))
        return next(self.free_ids)

    def give(self, entity, region=None, **command):
        """Gives a command for an entity, for example give(id, place=pb.Place(...)).

        An answer to an action goes by the region that tells of the action, so that both count together.
        """
        sent = Sent(pb.Command(entity=entity, number=self.next[entity], **command), self.tick)
        self.next[entity] += 1
        if entity:  # commands for the scene are not undone
            self.sent[entity].append(sent)
        self.send(sent.command, self.answering if region is None else region, True)
        return sent

    def set(self, entity, prop, value):
        sent = self.own[entity, prop] = self.give(
            entity, set_property=pb.Property(id=prop, value=msgpack.packb(value)))
        if entity in self.entities:
            self.entities[entity].properties[prop] = value
        return sent

    def send(self, command, region=None, new=False):
        known = self.entities.get(command.entity)
        region = region if region is not None else known and known.region
        if region not in self.leases:
            region = next(iter(self.leases), None)
        if region is not None:
            self.queue[region].append((command, new))

    # The protocol.
    def run(self):
        """Serves regions for ever; a broken connection is made again."""
        while True:
            try:
                self.serve()
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise
            time.sleep(0.1)

    def serve(self):
        self.requests = requests = queue.SimpleQueue()
        with self.channel() as channel:
            first = pb.Open(session=self.session, received=self.received, scene=self.scene, name=self.name)
            requests.put(pb.Request(open=first))
            stub = rpc.LogicStub(channel)
            for response in stub.Attach(iter(requests.get, None), metadata=self.metadata):
                kind = response.WhichOneof("message")
                self.received = response.sequence or self.received
                take = getattr(self, "take_" + (kind or ""), lambda _: None)
                answer = take(getattr(response, kind or "sequence"))
                if answer or response.sequence:
                    requests.put(answer or pb.Request(received=pb.Received(received=self.received)))

    def channel(self):
        if self.ca is None:
            return grpc.insecure_channel(self.address)
        with open(self.ca, "rb") as file:
            return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(file.read()))

    def take_opened(self, opened):
        if not opened.resumed:
            self.forget()
            self.session, self.received = opened.session, 0
            self.take_ids(opened)
        self.send_again(lambda sent: sent.applied is None)

    def take_ids(self, block):
        ids = range(block.first_id, block.first_id + block.ids)
        self.free_ids = itertools.chain(self.free_ids, ids)

    def take_started(self, started):
        lease = self.leases.get(started.region)
        if not lease or (lease.epoch, lease.lease) != (started.epoch, started.lease):
            self.forget_entities(started.region)
            self.take_back_later(started)
        self.leases[started.region] = started
        for told in started.entities:
            self.meet(told, started.region, started.tick)
        if not started.more:
            self.begin_tick(started)
            self.on_started(started.region)
        self.acts(started.region, started.acted)
        return None if started.more else self.batch(started)

    def take_events(self, events):
        self.begin_tick(events)
        for event in events.events:
            kind = event.WhichOneof("event") or "none"
            getattr(self, "event_" + kind, lambda *_: None)(events.region, getattr(event, kind, None))
        for id, x, y, z in zip(events.moved, events.x, events.y, events.z):
            if entity := self.entities.get(id):
                entity.x, entity.y, entity.z = x, y, z
        for changed in events.changed:
            for prop in changed.properties if changed.entity in self.entities else ():
                own = self.own.get((changed.entity, prop.id))
                # A value that a command on its way replaces is old.
                if not own or own.applied or own.durable:
                    value = msgpack.unpackb(prop.value)
                    self.entities[changed.entity].properties[prop.id] = value
        if events.more:
            return None
        self.on_tick(events.region)
        if events.tick % RESEND_TICKS == 0:
            self.send_again(lambda s: s.applied is None and s.tick + RESEND_TICKS < self.tick)
        return self.batch(events)

    def begin_tick(self, told):
        self.ticks[told.region] = told.tick
        self.tick = max(self.tick, told.tick)

    def batch(self, told):
        region, tick = told.region, told.tick
        lease, commands = self.leases[region], self.queue.pop(region, [])
        batches = self.batches[region]
        batches[lease.epoch, lease.lease, tick] = [(c.entity, c.number) for c, new in commands if new]
        if len(batches) > 100:
            del batches[next(iter(batches))]
        return pb.Request(batch=pb.Batch(
            region=region, epoch=lease.epoch, lease=lease.lease, handled=tick,
            received=self.received, commands=[command for command, _ in commands]))

    def meet(self, told, region, tick):
        entity = self.entities[told.id] = Entity(told, region)
        self.next[told.id] = max(self.next[told.id], told.applied + 1)
        self.note_applied(told.id, told.applied, (region, tick))
        for sent in self.sent.get(told.id, ()):
            if sent.applied is None and sent.command.HasField("set_property"):
                prop = sent.command.set_property
                entity.properties[prop.id] = msgpack.unpackb(prop.value)
        return entity

    def event_entered(self, region, entered):
        self.on_entered(self.meet(entered.entity, region, self.ticks[region]))

    event_arrived = event_entered

    def event_left(self, region, left):
        entity = self.entities.get(left.entity)
        if entity and entity.region == region:
            del self.entities[left.entity]
            self.on_left(entity, left)

    def event_sighted(self, region, sighted):
        other = sighted.entity
        known = self.entities.get(other.id)
        if known is None or known.region is None:
            self.entities[other.id] = Entity(other, None)
        if watcher := self.entities.get(sighted.watcher):
            watcher.sighted.add(other.id)

    def event_lost(self, region, lost):
        if watcher := self.entities.get(lost.watcher):
            watcher.sighted.discard(lost.entity)

    def event_acted(self, region, act):
        self.acts(region, [act])

    def acts(self, region, acts):
        self.answering = region
        for act in acts:
            if entity := self.entities.get(act.entity):
                entity.x, entity.y, entity.z = act.position.x, act.position.y, act.position.z
                self.on_acted(entity, act)
        self.answering = None

    def take_ended(self, ended):
        self.leases.pop(ended.region, None)
        self.forget_entities(ended.region)

    def forget_entities(self, region):
        for id in [e.id for e in self.entities.values() if e.region == region]:
            del self.entities[id]

    def take_planes(self, told):
        for plane in told.planes:
            self.planes.pop(plane.plane, None)
            if plane.open:
                self.planes[plane.plane] = list(plane.subjects)

    def take_dropped(self, dropped):
        for known in self.leases, self.entities, self.queue, self.planes:
            known.clear()
        self.send_again(lambda sent: sent.applied is None)

    def take_refused(self, refused):
        # The next worker of the region is told again of what these commands were answers to.
        name = refused.epoch, refused.lease, refused.handled
        for entity, number in self.batches[refused.region].pop(name, []):
            self.take_back(entity, number)

    def take_back_later(self, started):
        """Batches after the last one that the region has counted never will be."""
        counted = started.counted_epoch, started.counted_lease, started.counted_tick
        for name, commands in self.batches.pop(started.region, {}).items():
            for entity, number in commands if name > counted else ():
                self.take_back(entity, number)

    def take_back(self, entity, number):
        """A command was not given, nor any after it."""
        sent = self.sent[entity]
        while sent and sent[-1].command.number >= number:
            sent.pop()
        self.next[entity] = min(self.next[entity], number)

    def note_applied(self, entity, number, at):
        for sent in self.sent.get(entity, ()):
            if sent.command.number <= number and sent.applied is None:
                sent.applied = at

    def take_applied(self, applied):
        for entity, number in zip(applied.entities, applied.numbers):
            self.note_applied(entity, number, (applied.region, applied.tick))
        gaps = {}
        for result in applied.refused:
            sents = self.sent.get(result.entity, ())
            sent = next((s for s in sents if s.command.number == result.number), None)
            if result.reason == pb.REASON_GAP:
                gaps[result.entity] = result.expected
            elif sent and result.reason != pb.REASON_BUSY:
                if result.reason == pb.REASON_UNKNOWN_ENTITY:
                    self.take_back(result.entity, result.number)
                self.on_refused(sent, result)
        for entity, expected in gaps.items():
            self.number_anew(entity, expected)
            # Each command behind a gap is refused: they are sent again once in a tick.
            self.send_again(lambda s: s.tick < self.tick and s.command.number >= expected, entity)

    def number_anew(self, entity, expected):
        """The numbers of a player begin anew if two regions have died with it."""
        sents = self.sent.get(entity, ())
        if sents and sents[0].command.number > expected:
            for number, sent in enumerate(sents, expected):
                sent.command.number, sent.applied = number, None
            self.next[entity] = expected + len(sents)

    def take_durable(self, durable):
        self.saved[durable.region] = durable.tick
        for entity, sent in list(self.sent.items()):
            while sent and sent[0].applied and sent[0].applied[1] <= self.saved.get(sent[0].applied[0], -1):
                sent.popleft().durable = True
            if not sent:
                del self.sent[entity]

    def take_recovered(self, recovered):
        self.saved.pop(recovered.region, None)
        # What was counted is not known any more: commands are repeated, and applied once.
        self.batches.pop(recovered.region, None)
        lost = (lambda s: s.applied and s.applied[0] == recovered.region and s.applied[1] > recovered.since)
        self.send_again(lost)

    def send_again(self, wanted, only=None):
        for entity in [only] if only else list(self.sent):
            for sent in self.sent.get(entity, ()):
                if wanted(sent):
                    sent.applied, sent.tick = None, self.tick
                    self.send(sent.command)
