package agent_test

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// wire calls the other node's agent directly. It implements agent.Peers and
// agent.Remote.
type wire struct {
	from api.NodeID
	to   *node
}

func (w wire) PrepareMigration(ctx context.Context, _ api.NodeID, r agent.PrepareRequest) (agent.PrepareReply, error) {
	return w.to.agent.HandlePrepareMigration(ctx, w.from, r)
}

func (w wire) OpenTunnel(_ context.Context, _ api.NodeID, r agent.TunnelRequest) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _ = w.to.agent.HandleTunnel(context.Background(), w.from, r, far) }()
	return near, nil
}

func (w wire) FinishMigration(ctx context.Context, _ api.NodeID, r agent.FinishRequest) (agent.FinishReply, error) {
	return w.to.agent.HandleFinish(ctx, w.from, r)
}

func (w wire) CopyProgress(ctx context.Context, _ api.NodeID, r agent.CopyRequest) (agent.CopyReply, error) {
	return w.to.agent.HandleCopyProgress(ctx, w.from, r)
}

func (w wire) FetchVolume(ctx context.Context, _ api.NodeID, r agent.VolumeRequest) (io.ReadCloser, sds.Volume, error) {
	pr, pw := io.Pipe()
	begun := make(chan error, 2)
	var have sds.Volume
	go func() {
		err := w.to.agent.ExportVolume(ctx, w.from, r, pw, func(v sds.Volume) { have = v; begun <- nil })
		_ = pw.CloseWithError(err)
		begun <- err
	}()
	err := <-begun
	return pr, have, err
}

func (w wire) FetchImage(ctx context.Context, _ api.NodeID, id api.ImageID) (io.ReadCloser, sds.Image, error) {
	return w.to.agent.ExportImage(ctx, id)
}

// TestTwoRunningAgents runs two agents with all their goroutines: an image is
// fetched, and an instance is migrated there and back.
func TestTwoRunningAgents(t *testing.T) {
	pools := sdsfake.Shared("pool-1", sds.Limits{}, 2)
	a, b := newNode(t, hypfake.Guest{}), newNode(t, hypfake.Guest{})
	b.store = a.store
	for i, n := range []*node{a, b} {
		id, other := api.NodeID([]string{"node-1", "node-2"}[i]), []*node{b, a}[i]
		n.opts = func(o *agent.Options) {
			o.NodeID, o.NodeName, o.BootID = id, string(id), "boot-1"
			o.Pools[api.PoolShared] = pools[i]
			o.Migrator, o.Peers, o.Remote = n.machines, wire{id, other}, wire{id, other}
		}
		n.start()
	}
	nodeThere := func(id string) func() bool {
		return func() bool { _, err := a.store.Get(context.Background(), api.KindNode, id); return err == nil }
	}
	a.until("both nodes reported", func() bool { return nodeThere("node-1")() && nodeThere("node-2")() })
	pools[0].Serve("https://images.example/debian", raw())
	a.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "img", Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/debian"})},
		api.Command{Op: api.OpAssign, Kind: api.KindImage, ID: "img-1", Expect: api.AnyRevision, Data: api.Encode(api.ImageAssignment{Node: "node-1"})})
	a.until("img-1 ready", func() bool { return a.imageStatus("img-1").Phase == api.ImageReady })
	as := api.InstanceAssignment{Node: "node-1", Epoch: 1, Generation: 1, Vcpus: 1, MemoryBytes: 1 << 30, RootVolume: "vol-ins-1"}
	va := api.VolumeAssignment{Node: "node-1", Epoch: 1}
	assign := func() {
		a.apply(api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision, Data: api.Encode(as)},
			api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: "vol-ins-1", Expect: api.AnyRevision, Data: api.Encode(va)})
	}
	a.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: "ins-1", Name: "ins-1", Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(api.InstanceSpec{Image: "img-1"})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-ins-1", Name: "ins-1", Finalizers: []string{api.FinalizerAgent},
			Data: api.Encode(api.VolumeSpec{Image: "img-1", Instance: "ins-1", Root: true, SizeBytes: 2 << 20})})
	assign()
	a.phase("ins-1", api.InstanceRunning)
	if in, _ := a.get("ins-1"); in.Status.Machine.Type != "pc-q35-10.0" {
		t.Errorf("machine of ins-1 = %+v, want type pc-q35-10.0", in.Status.Machine)
	}
	for i, to := range []api.NodeID{"node-2", "node-1"} {
		id, from := []string{"mig-1", "mig-2"}[i], as.Node
		as.MigrateTo = to
		assign()
		a.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: id, Name: id, Data: api.Encode(api.MigrationSpec{Instance: "ins-1"})},
			api.Command{Op: api.OpAssign, Kind: api.KindMigration, ID: id, Expect: api.AnyRevision,
				Data: api.Encode(api.MigrationAssignment{Source: from, Target: to, Phase: api.MigrationPreparing})})
		a.until(id+" succeeds", func() bool {
			o, err := a.store.Get(context.Background(), api.KindMigration, id)
			if err != nil {
				t.Fatal(err)
			}
			m, err := api.Decode[api.Migration](o)
			if err != nil || m.Status.Phase == api.MigrationFailed {
				t.Fatalf("migration %s: status %+v, error %v; want it to succeed", id, m.Status, err)
			}
			return m.Status.Phase == api.MigrationSucceeded
		})
		as.Node, as.MigrateTo, as.Epoch = to, "", as.Epoch+1
		va.Node, va.Epoch = to, as.Epoch
		assign()
		a.apply(api.Command{Op: api.OpAssign, Kind: api.KindMigration, ID: id, Expect: api.AnyRevision,
			Data: api.Encode(api.MigrationAssignment{Source: from, Target: to, Phase: api.MigrationSucceeded})})
		a.until("ins-1 adopted by the target", func() bool {
			in, _ := a.get("ins-1")
			return in.Status.Node == to && in.Status.Phase == api.InstanceRunning
		})
	}
	a.remove("ins-1")
	a.clean()
	a.until("no domain left on b", func() bool { d, _ := b.machines.List(context.Background()); return len(d) == 0 })
}
