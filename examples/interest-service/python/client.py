"""A game server in Python that uses the interest service.

Two players and a wolf walk about; the service says who sees whom. In between the connection breaks,
and the client goes on where it was.

    purview interest
    python3 -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. \\
        proto/purview/interest/v1/interest.proto
    python3 client.py 127.0.0.1:7791
"""

import queue
import sys

import grpc
from purview.interest.v1 import interest_pb2 as pb
from purview.interest.v1 import interest_pb2_grpc

SCENE = 1
PLAYER, WOLF = 0, 1


class World:
    """A session. Batches that the service has not applied are sent again after a broken stream."""

    def __init__(self, channel, token=None):
        self.stub = interest_pb2_grpc.InterestStub(channel)
        self.metadata = [("authorization", f"Bearer {token}")] if token else None
        self.session, self.received, self.batches, self.unapplied = b"", 0, 0, []
        self.open()

    def open(self):
        """Begins the session, or resumes it."""
        self.requests = queue.SimpleQueue()
        start = pb.Open(session=self.session, received=self.received)
        self.requests.put(pb.Request(open=start))
        # The stream ends where the queue has None.
        self.stream = self.stub.World(iter(self.requests.get, None), metadata=self.metadata)
        opened = next(self.stream).opened
        if self.session and not opened.resumed:
            raise RuntimeError(f"send the whole state again: {opened.reason}")
        self.session = opened.session
        self.unapplied = [batch for batch in self.unapplied if batch.sequence > opened.applied]
        for batch in self.unapplied:
            self.requests.put(pb.Request(batch=batch))
        return opened

    def send(self, *changes):
        """Sends changes of the scene as a batch."""
        self.batches += 1
        batch = pb.Batch(sequence=self.batches, received=self.received)
        batch.changes.extend(pb.Change(scene=SCENE, **change) for change in changes)
        self.unapplied.append(batch)
        self.requests.put(pb.Request(batch=batch))

    def updates(self):
        """The updates of the last batch."""
        for response in self.stream:
            update = response.update
            self.received = update.sequence
            yield update
            if update.applied >= self.batches and not update.more:
                self.unapplied.clear()
                return

    def close(self):
        """Ends the session."""
        self.requests.put(pb.Request(close=pb.Close()))
        for _ in self.stream:
            pass


def show(world):
    for update in world.updates():
        for refusal in update.refused:
            print(f"refused: {refusal.text}")
        for scene in update.scenes:
            for observer, subject, appears in zip(scene.observers, scene.subjects, scene.appears):
                sees = "sees" if appears else "no longer sees"
                print(f"tick {scene.tick}: {observer} {sees} {subject}")


def main(address, token=None):
    with grpc.insecure_channel(address) as channel:
        world = World(channel, token)
        # Lengths are centimetres. The scene has one square kilometre, and a circle for all kinds.
        circle = pb.Reach(circle=pb.Circle(enter_cm=4_000, leave_cm=4_500))
        world.send(
            dict(
                create_scene=pb.CreateScene(
                    ground=pb.Rect(x0=0, z0=0, x1=100_000, z1=100_000),
                    by_distance=pb.ByDistance(),
                    reach=circle,
                )
            ),
            dict(
                create=pb.Create(
                    ids=[1, 2, 900],
                    kinds=[PLAYER, PLAYER, WOLF],
                    x=[10_000, 20_000, 13_000],
                    z=[50_000] * 3,
                )
            ),
            dict(tick=pb.Tick()),
        )
        show(world)
        world.send(
            dict(move=pb.Move(ids=[2, 77], x=[16_000, 0], z=[50_000, 0])),
            dict(tick=pb.Tick()),
        )
        show(world)

        world.stream.cancel()  # as if the connection were lost
        opened = world.open()
        print(f"resumed: the service has applied {opened.applied} batches")

        world.send(
            dict(move=pb.Move(ids=[1], x=[8_000], z=[50_000])),
            dict(delete=pb.Delete(ids=[2])),
            dict(tick=pb.Tick()),
        )
        show(world)
        world.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
