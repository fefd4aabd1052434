package leader

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/storetest"
)

func TestPlacesWhatComes(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	s := storetest.NewMemory()
	done := make(chan struct{})
	go func() { _ = Run(ctx, s, nil, slog.Default()); close(done) }()
	defer func() { cancel(); <-done }()

	put := func(c api.Command) {
		t.Helper()
		if _, err := s.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{c}}); err != nil {
			t.Fatal(err)
		}
	}
	put(api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Name: "small", Data: api.Encode(api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30})})
	put(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "i", Data: api.Encode(api.ImageSpec{Format: "raw"})})
	put(api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: "ins-1", Name: "a", Data: api.Encode(api.InstanceSpec{Flavor: "flv-1", Image: "img-1"})})
	put(api.Command{Op: api.OpReport, Kind: api.KindImage, ID: "img-1", Expect: api.AnyRevision, Data: api.Encode(api.ImageStatus{Phase: api.ImageReady})})
	put(api.Command{Op: api.OpReport, Kind: api.KindNode, ID: "node-1", Expect: api.AnyRevision, Name: "n",
		Data: api.Encode(api.NodeStatus{Vcpus: 4, MemoryBytes: 4 << 30, SeenAt: time.Now()})})

	for {
		o, err := s.Get(ctx, api.KindInstance, "ins-1")
		if err != nil {
			t.Fatal(err)
		}
		in, err := api.Decode[api.Instance](o)
		if err != nil {
			t.Fatal(err)
		}
		if in.Assignment.Node == "node-1" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("never placed: %+v", in.Assignment)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
