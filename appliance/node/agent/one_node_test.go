package agent_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// testNode is one node: what outlives its agent, and its agent.
type testNode struct {
	*testCluster
	id        api.NodeID
	machines  *hypfake.Driver
	local     *sdsfake.Store
	shared    *sdsfake.Store
	vgpus     *vgpus
	dir       string
	boot      string
	lease     bool
	cut       bool // disconnected from the store and the other nodes
	deaf      bool // its watch delivers nothing
	kept      []api.InstanceID
	keepErr   error
	fenced    map[api.InstanceID]time.Time
	fenceErr  error // error of the fence, which does not answer
	openFiles func(ctx context.Context, paths []string) (cache, aio string)
	keyless   bool              // without the keys of encrypted volumes
	old       bool              // the cluster is below the level of sealed states
	ports     map[string]string // plugged: id → tap
	vault     *vault            // the backup targets; nil if there are none
	cards     agent.Cards       // nil: no GPU metrics
	step      func(what string) // called around the agent's actions

	*agent.Stepper              // nil while the agent is killed
	seen           *objects.Set // what was delivered to the agent
	cancel         context.CancelFunc
	ctx            context.Context
}

var errCut = api.Errorf(api.CodeUnavailable, "disconnected")

// Apply, Get and List implement agent.Store of a node that can be disconnected.
func (h *testNode) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if h.cut {
		return nil, errCut
	}
	h.moment("apply")
	objects, err := h.store.Apply(ctx, b)
	h.moment("applied")
	if h.cut {
		return nil, errCut // the batch was applied, and the response is lost
	}
	return objects, errors.Join(err, ctx.Err()) // ctx has ended if the agent was killed meanwhile
}

func (h *testNode) moment(what string) {
	if h.step != nil {
		h.step(what)
	}
}

func (h *testNode) Get(ctx context.Context, k api.Kind, id string) (api.Object, error) {
	if h.cut {
		return api.Object{}, errCut
	}
	return h.store.Get(ctx, k, id)
}

func (h *testNode) List(ctx context.Context, q api.ListQuery) (api.ListPage, error) {
	return h.store.List(ctx, q)
}

// Valid implements agent.Lease.
func (h *testNode) Valid() bool { return h.lease }

// Keep implements agent.Fence.
func (h *testNode) Keep(ids []api.InstanceID) error {
	if h.keepErr == nil {
		h.kept = slices.Clone(ids)
	}
	return h.keepErr
}

func (h *testNode) other(id api.NodeID) (*testNode, error) {
	for _, o := range h.nodes {
		if o.id == id && !o.cut && !h.cut && o.Stepper != nil {
			return o, nil
		}
	}
	return nil, errCut
}

// FetchImage implements agent.Remote.
func (h *testNode) FetchImage(ctx context.Context, from api.NodeID, id api.ImageID) (io.ReadCloser, sds.Image, error) {
	o, err := h.other(from)
	if err != nil {
		return nil, sds.Image{}, err
	}
	return o.Agent().ExportImage(ctx, id)
}

// PrepareMigration, OpenTunnel and FinishMigration implement agent.Peers.
func (h *testNode) PrepareMigration(_ context.Context, to api.NodeID, r agent.PrepareRequest) (agent.PrepareReply, error) {
	o, err := h.other(to)
	if err != nil {
		return agent.PrepareReply{}, err
	}
	defer h.moment("prepared")
	return o.Agent().HandlePrepareMigration(o.ctx, h.id, r)
}

func (h *testNode) OpenTunnel(_ context.Context, to api.NodeID, r agent.TunnelRequest) (net.Conn, error) {
	o, err := h.other(to)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	ctx, a := o.ctx, o.Agent()
	go func() { _ = a.HandleTunnel(ctx, h.id, r, far) }()
	return near, nil
}

func (h *testNode) FinishMigration(_ context.Context, to api.NodeID, r agent.FinishRequest) (agent.FinishReply, error) {
	o, err := h.other(to)
	if err != nil {
		return agent.FinishReply{}, err
	}
	defer h.moment("finished")
	return o.Agent().HandleFinish(o.ctx, h.id, r)
}

func (h *testNode) CopyProgress(_ context.Context, to api.NodeID, r agent.CopyRequest) (agent.CopyReply, error) {
	o, err := h.other(to)
	if err != nil {
		return agent.CopyReply{}, err
	}
	defer h.moment("asked")
	return o.Agent().HandleCopyProgress(o.ctx, h.id, r)
}

// FetchVolume ends in the middle if one of the agents is killed meanwhile.
func (h *testNode) FetchVolume(_ context.Context, from api.NodeID, r agent.VolumeRequest) (io.ReadCloser, sds.Volume, error) {
	var have sds.Volume
	o, err := h.other(from)
	if err != nil {
		return nil, have, err
	}
	var content bytes.Buffer
	if err := o.Agent().ExportVolume(o.ctx, h.id, r, &content, func(v sds.Volume) { have = v }); err != nil {
		return nil, have, err
	}
	h.moment("fetching")
	if h.Stepper == nil || o.Stepper == nil {
		content.Truncate(content.Len() / 2)
	}
	return io.NopCloser(&content), have, nil
}

// start starts the node's agent.
func (h *testNode) start() {
	h.ctx, h.cancel = context.WithCancel(context.Background())
	o := agent.Options{NodeID: h.id, NodeName: string(h.id), DataDir: h.dir, RunDir: filepath.Join(h.dir, "run"), Store: h,
		Machines: h.machines, Migrator: h.machines, Pools: map[string]sds.Driver{api.PoolLocal: h.local}, VGPUs: h.vgpus,
		Accelerator: hypervisor.TCG, Lease: h, Fence: h, Remote: h, Peers: h, BootID: h.boot,
		TPMStates: filepath.Join(h.dir, "tpm"), MachineStates: func() bool { return !h.old },
		Fenced: func(id api.InstanceID, since time.Time) (bool, error) { return h.fenced[id].After(since), h.fenceErr },
		Log:    slog.New(slog.DiscardHandler), Now: func() time.Time { return h.now }, Go: func(f func()) { f() }, NoSync: true,
		WriteSeed: func(path string, s cloudinit.Seed) error { return os.WriteFile(path, []byte(s.Instance), 0o600) }}
	o.Ports, o.Cards, o.OpenFiles = h, h.cards, h.openFiles
	if h.vault != nil {
		o.Backups = kept{h.vault, h}
	}
	if !h.keyless {
		o.Keys = h
	}
	if h.shared != nil {
		o.Pools[api.PoolShared] = h.shared
	}
	if os.Getenv("AGENT_LOG") != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("at", h.now.Format("05.000"))
	}
	h.Stepper, h.seen = agent.NewStepper(o), h.stored()
	h.Deliver(watchcache.Update{Changes: h.seen.All(), All: true})
	h.try(h.Sweep(h.ctx))
	h.try(h.Report(h.ctx))
}

// kill ends the agent as kill -9 would.
func (h *testNode) kill() {
	if h.Stepper != nil {
		h.cancel()
		h.Stepper = nil
	}
}

func (h *testNode) try(err error) {
	if err != nil && !h.cut {
		h.t.Logf("%s: %v", h.id, err)
	}
}

// stored returns every object in the store of the kinds that agents use.
func (h *testNode) stored() *objects.Set {
	all, err := objects.Read(context.Background(), h.store, agent.Kinds...)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// news returns the changes that were not delivered to the agent yet, by revision,
// removed objects last.
func (h *testNode) news() []objects.Change {
	now := h.stored()
	changes := h.seen.Diff(now)
	h.seen = now
	at := func(c objects.Change) int64 {
		if c.Now == nil {
			return math.MaxInt64
		}
		return reflect.ValueOf(c.Now).FieldByName("Meta").Interface().(api.Meta).Revision
	}
	slices.SortStableFunc(changes, func(a, b objects.Change) int { return cmp.Compare(at(a), at(b)) })
	return changes
}

func (h *testNode) deliver(c objects.Change) {
	h.Deliver(watchcache.Update{Changes: []objects.Change{c}})
}

func (h *testNode) receive() {
	if h.cut {
		return
	}
	for _, c := range h.news() {
		h.deliver(c)
	}
}

// work performs everything that is due, and reports whether anything was.
func (h *testNode) work() (did bool) {
	for range 1000 {
		if h.Stepper == nil {
			return did
		}
		due := h.Due(h.now)
		if len(due) == 0 {
			return did
		}
		did = true
		h.moment(due[0])
		if h.Stepper == nil {
			return did
		}
		_, err := h.Reconcile(h.ctx, due[0])
		h.try(err)
		h.once()
	}
	h.t.Fatalf("%s has work after 1000 steps: %v", h.id, h.Due(h.now))
	return did
}

// die kills the agent and lets the fence kill the node's instances.
func (h *testNode) die() {
	h.kill()
	h.lapse()
}

// lapse ends the lease: the fence kills every instance that it is not to keep.
func (h *testNode) lapse() {
	h.lease = false
	domains, _ := h.machines.List(context.Background())
	for _, d := range domains {
		if d.State.Active() && !slices.Contains(h.kept, d.ID) {
			h.machines.Crash(d.ID, "killed")
			h.fenced[d.ID] = h.now
		}
	}
}

func (h *testNode) starts(id string) (n int) {
	for _, c := range h.machines.Calls() {
		if c == "Load "+id {
			n++
		}
	}
	return n
}

// left describes what is left on a node of instances and of local volumes; empty if
// there is nothing.
func (h *testNode) left() string {
	domains, _ := h.machines.List(context.Background())
	volumes, _ := h.local.Volumes(context.Background())
	files, _ := filepath.Glob(filepath.Join(h.dir, "*", "*"))
	if len(domains)+len(volumes)+len(files)+len(h.vgpus.slices) == 0 {
		return ""
	}
	return fmt.Sprintf("domains %v, volumes %v, files %v, vGPUs %v", domains, volumes, files, h.vgpus.slices)
}
