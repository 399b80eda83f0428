// A game server in TypeScript that uses the interest service.
//
// Two players and a wolf walk about; the service says who sees whom. In between the connection
// breaks, and the client goes on where it was.
//
//     purview interest
//     npm ci && npm run build
//     node dist/client.js 127.0.0.1:7791 PATH/TO/proto

import * as grpc from "@grpc/grpc-js";
import * as loader from "@grpc/proto-loader";

// What of the messages is used here. Ids of this game are small: as numbers they are exact.
interface Opened {
  session: Buffer;
  resumed: boolean;
  applied: number;
  reason: string;
}
interface SceneUpdate {
  tick: number;
  observers: number[];
  subjects: number[];
  appears: boolean[];
}
interface Update {
  sequence: number;
  applied: number;
  scenes: SceneUpdate[];
  refused: { text: string }[];
  more: boolean;
}
interface Response {
  opened?: Opened;
  update?: Update;
}
type Change = Record<string, object>;
interface Batch {
  sequence: number;
  received: number;
  changes: Change[];
}
type Stream = grpc.ClientDuplexStream<object, Response>;

const SCENE = 1;
const [PLAYER, WOLF] = [0, 1];

function connect(address: string, protos: string): grpc.Client & { World(m: grpc.Metadata): Stream } {
  const options = { keepCase: true, longs: Number, defaults: true, oneofs: true, includeDirs: [protos] };
  const loaded = grpc.loadPackageDefinition(
    loader.loadSync("purview/interest/v1/interest.proto", options),
  ) as any;
  return new loaded.purview.interest.v1.Interest(address, grpc.credentials.createInsecure());
}

// A session. Batches that the service has not applied are sent again after a broken stream.
class World {
  private stream!: Stream;
  private responses!: AsyncIterator<Response>;
  private session: Buffer = Buffer.alloc(0);
  private received = 0;
  private batches = 0;
  private unapplied: Batch[] = [];

  constructor(
    private client: ReturnType<typeof connect>,
    private token?: string,
  ) {}

  // Begins the session, or resumes it.
  async open(): Promise<Opened> {
    const metadata = new grpc.Metadata();
    if (this.token) metadata.set("authorization", `Bearer ${this.token}`);
    this.stream = this.client.World(metadata);
    this.responses = this.stream[Symbol.asyncIterator]();
    this.stream.write({ open: { session: this.session, received: this.received } });
    const opened = (await this.next()).opened;
    if (!opened) throw new Error("the first response must be `opened`");
    if (this.session.length > 0 && !opened.resumed) {
      throw new Error(`send the whole state again: ${opened.reason}`);
    }
    this.session = opened.session;
    this.unapplied = this.unapplied.filter((batch) => batch.sequence > opened.applied);
    for (const batch of this.unapplied) this.stream.write({ batch });
    return opened;
  }

  private async next(): Promise<Response> {
    const { value, done } = await this.responses.next();
    if (done) throw new Error("the service has closed the stream");
    return value;
  }

  // Sends changes of the scene as a batch.
  send(...changes: Change[]): void {
    this.batches += 1;
    const scenes = changes.map((change) => ({ scene: SCENE, ...change }) as unknown as Change);
    const batch = { sequence: this.batches, received: this.received, changes: scenes };
    this.unapplied.push(batch);
    this.stream.write({ batch });
  }

  // The updates of the last batch.
  async *updates(): AsyncGenerator<Update> {
    for (;;) {
      const { update } = await this.next();
      if (!update) throw new Error("`opened` is only the first response");
      this.received = update.sequence;
      yield update;
      if (update.applied >= this.batches && !update.more) {
        this.unapplied = [];
        return;
      }
    }
  }

  // Breaks the stream, as if the connection were lost.
  break(): void {
    this.stream.on("error", () => {});
    this.stream.cancel();
  }

  // Ends the session.
  async close(): Promise<void> {
    this.stream.end({ close: {} });
    while (!(await this.responses.next()).done);
  }
}

async function show(world: World): Promise<void> {
  for await (const update of world.updates()) {
    for (const refusal of update.refused) console.log(`refused: ${refusal.text}`);
    for (const scene of update.scenes) {
      scene.observers.forEach((observer, i) => {
        const sees = scene.appears[i] ? "sees" : "no longer sees";
        console.log(`tick ${scene.tick}: ${observer} ${sees} ${scene.subjects[i]}`);
      });
    }
  }
}

async function main(address: string, protos: string, token?: string): Promise<void> {
  const client = connect(address, protos);
  const world = new World(client, token);
  await world.open();
  // Lengths are centimetres. The scene has one square kilometre, and a circle for all kinds.
  world.send(
    {
      create_scene: {
        ground: { x0: 0, z0: 0, x1: 100_000, z1: 100_000 },
        by_distance: {},
        reach: { circle: { enter_cm: 4_000, leave_cm: 4_500 } },
      },
    },
    {
      create: {
        ids: [1, 2, 900],
        kinds: [PLAYER, PLAYER, WOLF],
        x: [10_000, 20_000, 13_000],
        z: [50_000, 50_000, 50_000],
      },
    },
    { tick: {} },
  );
  await show(world);
  world.send({ move: { ids: [2, 77], x: [16_000, 0], z: [50_000, 0] } }, { tick: {} });
  await show(world);

  world.break();
  const opened = await world.open();
  console.log(`resumed: the service has applied ${opened.applied} batches`);

  world.send(
    { move: { ids: [1], x: [8_000], z: [50_000] } },
    { delete: { ids: [2] } },
    { tick: {} },
  );
  await show(world);
  await world.close();
  client.close();
}

const [address, protos, token] = process.argv.slice(2);
if (!address || !protos) {
  console.error("usage: node client.js HOST:PORT FOLDER-OF-PROTOS [TOKEN]");
  process.exit(2);
}
await main(address, protos, token);
