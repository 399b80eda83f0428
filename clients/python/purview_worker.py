"""A logic worker: connects to a server, keeps what regions tell, and answers.

A game derives from `Worker`, overrides the methods whose names begin with `on_`, and calls `give` and `set`.
clients/python/README.md says how; the protocol is in proto/purview/logic/v1/logic.proto.
"""

import itertools
import queue
import time

import grpc
import msgpack
from purview.logic.v1 import logic_pb2 as pb
from purview.logic.v1 import logic_pb2_grpc as rpc

ANSWERS = 1_000


def unpacked(claims):
    return msgpack.unpackb(claims) if claims else {}


class Entity:
    """An entity as it was told last. `region` is None if it lives in no region of this worker."""

    def __init__(self, told, region):
        self.id, self.region = told.id, region
        self.update(told)

    def update(self, told):
        self.epoch, self.kind, self.plane = told.epoch, told.kind, told.plane
        self.x, self.y, self.z = told.position.x, told.position.y, told.position.z
        self.properties = {p.id: msgpack.unpackb(p.value) for p in told.properties}
        self.sighted, self.bonds, self.disconnected = set(told.sighted), list(told.bonds), told.disconnected
        self.subject, self.claims, self.name = told.subject, unpacked(told.claims), told.name


class Region:
    """What a region has told under a lease. `told`: its entities by their ids, None for ghosts, else their epochs."""

    def __init__(self, lease, rect):
        self.lease, self.rect, self.seq, self.tick, self.has_begun = lease, rect, 0, 0, False
        self.told, self.entities, self.heard = {}, {}, 0
        self.news = []  # which entities have entered and left, until all of a difference is there
        self.counted, self.durable = (), ()


class Given:
    """A command, or a moment. `batch`: the answer to a region that it is part of, once that is sent."""

    def __init__(self, command, region):
        self.command, self.region, self.batch = command, region, None


def name(batch):
    return (batch.lease.epoch, batch.lease.number, batch.seq) if batch.seq else ()


class Worker:
    def __init__(self, address, scene, name, token=None, ca=None):
        """`token`: what the server's `logic.token_file` has; `ca`: the authority of its certificate, a PEM file."""
        self.address, self.scene, self.name, self.ca = address, scene, name, ca
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.forget()

    def forget(self):
        self.regions, self.entities = {}, {}
        self.commands, self.marks = [], []  # of the next answer
        self.answering = None  # the region that is telling
        self.news = []
        self.answers = {}  # by region: answers of which is not known that they are durable
        self.sent = {}  # by region: the last answers with commands, which may still be refused
        self.planes = {}  # private planes that are open: who may come
        self.free_ids, self.used_ids, self.patience = iter(()), 0, 0

    # What a game overrides.
    def on_opened(self): "The worker is connected, and may be given regions."
    def on_started(self, region): "A region is this worker's from now on; its entities are known."
    def on_entered(self, entity): "An entity lives in a region of this worker from now on."
    def on_left(self, entity, ended): "An entity does not any more; `ended`: it lives nowhere any more."
    def on_acted(self, entity, act): "An entity of the region has acted; None: it is in no region of this worker by now."
    def on_refused(self, given, refusal): "A command was refused, perhaps again; `given` is None if it was given long ago."
    def on_undone(self, given): "A command has not counted, or was undone by a crash; its action is told again."
    def on_question(self, subject, claims, question): "Whether a player may come: None, why it may not, or the number of the plane that it enters."
    def on_tick(self, region): "All that has changed in a region was told."

    # What a game calls, in one of the methods above.
    def new_id(self):
        self.used_ids += 1
        if self.used_ids % 32_768 == 0:
            self.requests.put(pb.Request(more_ids=pb.MoreIds()))
        return next(self.free_ids)

    def give(self, entity, held=False, as_told=False, together=False, **command):
        """Gives a command for an entity, for example give(id, place=pb.Place(...)).

        It is part of the answer to the region that is telling. For an entity of another region it leaves that region
        at once, or, if it is held, when the death of no machine can undo it.

        `as_told`: only if the entity still lives in the region that is telling, as what is known of it says; `together`:
        together with the command before it, or not at all.
        """
        epoch = self.entities[entity].epoch if as_told else 0
        return self._give(pb.Command(entity=entity, held=held, epoch=epoch, together=together, **command))

    def give_subject(self, subject, **command):
        """The same for the player of a subject, wherever it plays: set_bonds, hold or kick.

        Bonds of a player that does not play are kept for it.
        """
        return self._give(pb.Command(subject=subject, **command))

    def give_content(self, plane, name, held=False, **command):
        """The same for what the scene contains under a name in a plane, wherever in the scene it lives."""
        content = pb.Content(plane=plane, name=name)
        return self._give(pb.Command(content=content, held=held, **command))

    def _give(self, command):
        given = Given(command, self.answering)
        self.commands.append(given)
        return given

    def mark(self):
        """The moment: when it is durable, all that the region has told until now is."""
        mark = Given(None, self.answering)
        self.marks.append(mark)
        return mark

    def set(self, entity, prop, value, **terms):
        """Sets a property, on the terms of `give`. What this worker knows of the entity has the value from now on."""
        if entity in self.entities:
            self.entities[entity].properties[prop] = value
        return self.give(entity, set_property=pb.Property(id=prop, value=msgpack.packb(value)), **terms)

    def named(self, plane, name):
        """What the scene contains under this name in a plane, if it lives in a region of this worker; else None."""
        all = self.entities.values()
        return next((e for e in all if e.name == name and e.id & 0xFFFF_FFFF == plane & 0xFFFF_FFFF), None)

    def is_durable(self, given):
        """Whether the death of no machine undoes a command, or a moment."""
        known = self.regions.get(given.region)
        return known is not None and given.batch is not None and given.batch <= known.durable

    # The protocol.
    def run(self):
        """Serves regions for ever; a broken connection is made again, as another worker."""
        while True:
            try:
                self.serve()
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise
            time.sleep(0.1)

    def serve(self):
        self.forget()
        self.requests = requests = queue.SimpleQueue()
        with self.channel() as channel:
            requests.put(pb.Request(open=pb.Open(scene=self.scene, name=self.name, answers=self.answers_questions())))
            stub = rpc.LogicStub(channel)
            for response in stub.Attach(iter(requests.get, None), metadata=self.metadata):
                kind = response.WhichOneof("message")
                take = getattr(self, "take_" + (kind or ""), lambda _: None)
                take(getattr(response, kind) if kind else None)
                self.forget_silent()

    def channel(self):
        if self.ca is None:
            return grpc.insecure_channel(self.address)
        with open(self.ca, "rb") as file:
            return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(file.read()))

    def take_opened(self, opened):
        self.patience = 3 * opened.takeover_ms / 1_000
        self.take_ids(opened)
        self.on_opened()

    def answers_questions(self):
        return type(self).on_question is not Worker.on_question

    def take_question(self, question):
        why = self.on_question(question.subject, unpacked(question.claims), question)
        verdict = pb.Verdict(question=question.question, allow=not isinstance(why, str))
        if isinstance(why, str):
            verdict.reason = why
        elif why is not None:
            verdict.plane = why
        self.requests.put(pb.Request(verdict=verdict))

    def take_ids(self, block):
        ids = range(block.first_id, block.first_id + block.ids)
        self.free_ids = itertools.chain(self.free_ids, ids)

    def take_told(self, told):
        lease, known = told.lease, self.regions.get(told.lease.region)
        last = (known.lease.epoch, known.lease.number) if known else ()
        if told.seq == 1 and last < (lease.epoch, lease.number):
            self.forget_region(lease.region)
            known = self.regions[lease.region] = Region(lease, told.rect)
        elif not known or last != (lease.epoch, lease.number) or told.seq != known.seq + 1:
            return  # it is late
        known.seq, known.tick, known.heard = told.seq, told.tick, time.monotonic()
        known.answer_ticks = told.answer_ticks
        self.answering, self.news = lease.region, known.news
        self.apply(lease.region, known, told)
        self.count(known, told)
        if not told.more:
            self.tell_news()
            if not known.has_begun:
                known.has_begun = True
                self.on_started(lease.region)
            self.acts(told.acts)
            self.on_tick(lease.region)
        self.answer(known, told)

    def apply(self, region, known, told):
        """Entities leave before they enter: each is where it is told under its highest epoch. The game hears of it when
        all is applied: what it then sets is newer than what was told.
        """
        for id in told.gone:
            if known.told.pop(id) is not None:
                self.leave(id, region, id in told.ended)
            known.entities.pop(id)
        for entity in told.entities:
            known.told[entity.id], known.entities[entity.id] = (None if entity.ghost else entity.epoch), entity
            self.meet(entity, region)
        for id, x, y, z in zip(told.moved, told.x, told.y, told.z):
            if entity := self.entities.get(id):
                entity.x, entity.y, entity.z = x, y, z
        for changed in told.changed:
            entity = self.entities.get(changed.entity)
            if entity and entity.region == region:
                entity.properties.update({p.id: msgpack.unpackb(p.value) for p in changed.properties})
            self.keep(known.entities[changed.entity], changed.properties)

    def keep(self, entity, properties):
        new = {p.id for p in properties}
        kept = [p for p in entity.properties if p.id not in new]
        del entity.properties[:]
        entity.properties.extend(kept + list(properties))

    def meet(self, told, region):
        entity = self.entities.get(told.id)
        if told.ghost:
            if entity is None or entity.region is None:
                self.entities[told.id] = Entity(told, None)
        elif entity is None or entity.region is None:
            entity = self.entities[told.id] = Entity(told, region)
            self.enters(entity)
        elif told.epoch > entity.epoch and entity.region != region:
            self.leaves(entity, False)
            entity = self.entities[told.id] = Entity(told, region)
            self.enters(entity)
        elif entity.region == region:
            entity.update(told)

    def enters(self, entity):
        # Those of a region that begins are told by `on_started`.
        if self.regions[entity.region].has_begun:
            self.news.append((entity, None))

    def leaves(self, entity, ended):
        # Of what was not told to enter nothing is told.
        if (entity, None) in self.news:
            self.news.remove((entity, None))
        else:
            self.news.append((entity, ended))

    def tell_news(self):
        while self.news:
            entity, ended = self.news.pop(0)
            if ended is None:
                self.on_entered(entity)
            else:
                self.on_left(entity, ended)

    def leave(self, id, region, ended):
        entity = self.entities.get(id)
        if entity is None or entity.region != region:
            return
        del self.entities[id]
        self.leaves(entity, ended)
        others = [(r.told[id], q) for q, r in self.regions.items() if q != region and r.told.get(id) is not None]
        if others and not ended:
            _, other = max(others)
            entity = self.entities[id] = Entity(self.regions[other].entities[id], other)
            self.enters(entity)

    def count(self, known, told):
        """Answers above the last one that has counted have not, or are undone."""
        known.counted, known.durable = name(told.counted), name(told.durable)
        region, answers = told.lease.region, []
        for batch, commands in self.answers.get(region, []):
            if batch > known.counted:
                for given in commands:
                    self.on_undone(given)
            elif batch > known.durable:
                answers.append((batch, commands))
        self.answers[region] = answers

    def acts(self, acts):
        for act in acts:
            self.on_acted(self.entities.get(act.entity), act)

    def answer(self, known, told):
        commands, self.commands, self.answering = self.commands, [], None
        batch = told.lease.epoch, told.lease.number, told.seq
        for given in commands + self.marks:
            given.region, given.batch = told.lease.region, batch
        self.marks = []
        self.answers[told.lease.region].append((batch, commands))
        if commands:
            sent = self.sent.setdefault(told.lease.region, {})
            sent[batch] = commands
            if len(sent) > ANSWERS:
                del sent[next(iter(sent))]
        self.requests.put(pb.Request(answer=pb.Answer(
            lease=told.lease, seq=told.seq, commands=[given.command for given in commands])))

    def take_ended(self, ended):
        known = self.regions.get(ended.lease.region)
        if known and known.lease == ended.lease:
            self.forget_region(ended.lease.region)

    def forget_silent(self):
        now = time.monotonic()
        for region in [q for q, known in self.regions.items() if known.heard + self.patience < now]:
            self.forget_region(region)

    def forget_region(self, region):
        known = self.regions.pop(region, None)
        self.news = known.news if known else []
        for id in known.told if known else ():
            self.leave(id, region, False)
        self.tell_news()

    def take_refused(self, refused):
        for refusal in refused.refusals:
            commands = self.sent.get(refused.region, {}).get(name(refusal.batch))
            self.on_refused(commands[refusal.place] if commands else None, refusal)
        self.requests.put(pb.Request(got=pb.Got(
            region=refused.region, epoch=refused.epoch, last=refused.last)))

    def take_planes(self, told):
        for plane in told.planes:
            self.planes.pop(plane.plane, None)
            if plane.open:
                self.planes[plane.plane] = list(plane.subjects)
