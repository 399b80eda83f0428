// A game server in Go that uses the interest service.
//
// Two players and a wolf walk about; the service says who sees whom. In between the connection
// breaks, and the client goes on where it was. It acknowledges what it has applied, so that it can
// resume wherever its stream breaks.
//
//	purview interest
//	proto=purview/interest/v1/interest.proto
//	to=module=interest-client,M$proto=interest-client/interestpb
//	protoc -I ../../../proto --go_out=. --go_opt=$to --go-grpc_out=. --go-grpc_opt=$to $proto
//	go mod init interest-client && go mod tidy
//	go run . 127.0.0.1:7791
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "interest-client/interestpb"
)

const (
	scene  = 1
	player = 0
	wolf   = 1
)

// codec makes bytes of messages: that of old gRPC packages does not know the generated code of today.
type codec struct{}

func (codec) Marshal(v interface{}) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }

func (codec) Unmarshal(data []byte, v interface{}) error {
	return proto.Unmarshal(data, v.(proto.Message))
}

func (codec) Name() string { return "proto" }

// World is a session. Batches that the service has not applied are sent again after a broken stream.
type World struct {
	client    pb.InterestClient
	stream    pb.Interest_WorldClient
	cancel    context.CancelFunc
	session   []byte
	received  uint64
	batches   uint64
	unapplied []*pb.Batch
}

// Open begins the session, or resumes it.
func (w *World) Open() (*pb.Opened, error) {
	// With a token: metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token).
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := w.client.World(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	w.stream, w.cancel = stream, cancel
	open := &pb.Open{Session: w.session, Received: w.received, Acknowledges: true}
	if err := stream.Send(&pb.Request{Message: &pb.Request_Open{Open: open}}); err != nil {
		return nil, err
	}
	response, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	opened := response.GetOpened()
	if len(w.session) > 0 && !opened.Resumed {
		return nil, fmt.Errorf("send the whole state again: %s", opened.Reason)
	}
	w.session = opened.Session
	for len(w.unapplied) > 0 && w.unapplied[0].Sequence <= opened.Applied {
		w.unapplied = w.unapplied[1:]
	}
	for _, batch := range w.unapplied {
		if err := w.sendBatch(batch); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

func (w *World) sendBatch(batch *pb.Batch) error {
	return w.stream.Send(&pb.Request{Message: &pb.Request_Batch{Batch: batch}})
}

// Ask sends changes of the scene as a batch, and tells what they lead to.
func (w *World) Ask(changes ...*pb.Change) error {
	w.batches++
	batch := &pb.Batch{Sequence: w.batches, Changes: changes}
	w.unapplied = append(w.unapplied, batch)
	if err := w.sendBatch(batch); err != nil {
		return err
	}
	for {
		response, err := w.stream.Recv()
		if err != nil {
			return err
		}
		update := response.GetUpdate()
		show(update)
		w.received = update.Sequence
		// Enough for a small world. With much to read, do so before Opened.window_bytes have come.
		done := &pb.Acknowledgement{Session: w.session, Received: w.received}
		if _, err := w.client.Acknowledge(context.Background(), done); err != nil {
			return err
		}
		if update.Applied >= w.batches && !update.More {
			w.unapplied = nil
			return nil
		}
	}
}

// Close ends the session.
func (w *World) Close() error {
	err := w.stream.Send(&pb.Request{Message: &pb.Request_Close{Close: &pb.Close{}}})
	for err == nil {
		_, err = w.stream.Recv()
	}
	w.cancel()
	return nil
}

func show(update *pb.Update) {
	for _, refusal := range update.Refused {
		fmt.Println("refused:", refusal.Text)
	}
	for _, scene := range update.Scenes {
		for i, observer := range scene.Observers {
			sees := "no longer sees"
			if scene.Appears[i] {
				sees = "sees"
			}
			fmt.Printf("tick %d: %d %s %d\n", scene.Tick, observer, sees, scene.Subjects[i])
		}
	}
}

func createScene(of *pb.CreateScene) *pb.Change {
	return &pb.Change{Scene: scene, Change: &pb.Change_CreateScene{CreateScene: of}}
}

func create(of *pb.Create) *pb.Change {
	return &pb.Change{Scene: scene, Change: &pb.Change_Create{Create: of}}
}

func move(of *pb.Move) *pb.Change {
	return &pb.Change{Scene: scene, Change: &pb.Change_Move{Move: of}}
}

func tick() *pb.Change {
	return &pb.Change{Scene: scene, Change: &pb.Change_Tick{Tick: &pb.Tick{}}}
}

func run(address string) error {
	messages := grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}))
	connection, err := grpc.Dial(address, grpc.WithInsecure(), messages)
	if err != nil {
		return err
	}
	defer connection.Close()
	world := &World{client: pb.NewInterestClient(connection)}
	if _, err := world.Open(); err != nil {
		return err
	}
	// Lengths are centimetres. The scene has one square kilometre, and a circle for all kinds.
	circle := &pb.Circle{EnterCm: 4_000, LeaveCm: 4_500}
	err = world.Ask(
		createScene(&pb.CreateScene{
			Ground: &pb.Rect{X1: 100_000, Z1: 100_000},
			Mode:   &pb.CreateScene_ByDistance{ByDistance: &pb.ByDistance{}},
			Reach:  &pb.Reach{Reach: &pb.Reach_Circle{Circle: circle}},
		}),
		create(&pb.Create{
			Ids:   []uint64{1, 2, 900},
			Kinds: []uint32{player, player, wolf},
			X:     []int32{10_000, 20_000, 13_000},
			Z:     []int32{50_000, 50_000, 50_000},
		}),
		tick(),
	)
	if err != nil {
		return err
	}
	walk := move(&pb.Move{Ids: []uint64{2, 77}, X: []int32{16_000, 0}, Z: []int32{50_000, 0}})
	if err := world.Ask(walk, tick()); err != nil {
		return err
	}

	world.cancel() // as if the connection were lost
	opened, err := world.Open()
	if err != nil {
		return err
	}
	fmt.Printf("resumed: the service has applied %d batches\n", opened.Applied)

	walk = move(&pb.Move{Ids: []uint64{1}, X: []int32{8_000}, Z: []int32{50_000}})
	leave := &pb.Change_Delete{Delete: &pb.Delete{Ids: []uint64{2}}}
	if err := world.Ask(walk, &pb.Change{Scene: scene, Change: leave}, tick()); err != nil {
		return err
	}
	return world.Close()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client HOST:PORT")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}
