package agent_test

import (
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

// house is one node: what survives its agent, and its agent.
type house struct {
	*town
	id        api.NodeID
	machines  *hypfake.Driver
	local     *sdsfake.Store
	shared    *sdsfake.Store
	vgpus     *vgpus
	dir       string
	boot      string
	lease     bool
	cut       bool // from the store and the other nodes
	deaf      bool // its watch lags behind
	kept      []api.InstanceID
	keepErr   error
	fenced    map[api.InstanceID]time.Time
	fenceErr  error // it does not answer
	openFiles func(ctx context.Context, paths []string) (cache, aio string)
	keyless   bool              // it has no keys of encrypted volumes
	ports     map[string]string // plugged: id → tap
	vault     *vault            // where backups are; nil: there are none
	cards     agent.Cards       // nil: no charts of them
	step      func(what string) // called around what the agent does

	*agent.Stepper              // nil: its agent is dead
	seen           *objects.Set // what the agent was told
	cancel         context.CancelFunc
	ctx            context.Context
}

var errCut = api.Errorf(api.CodeUnavailable, "cut off")

// Store of a node that can be cut off.
func (h *house) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if h.cut {
		return nil, errCut
	}
	h.moment("apply")
	objects, err := h.store.Apply(ctx, b)
	h.moment("applied")
	if h.cut {
		return nil, errCut // it was done, and the answer is lost
	}
	return objects, errors.Join(err, ctx.Err()) // of one that is dead by now
}

func (h *house) moment(what string) {
	if h.step != nil {
		h.step(what)
	}
}

func (h *house) Get(ctx context.Context, k api.Kind, id string) (api.Object, error) {
	if h.cut {
		return api.Object{}, errCut
	}
	return h.store.Get(ctx, k, id)
}

func (h *house) List(ctx context.Context, q api.ListQuery) (api.ListPage, error) {
	return h.store.List(ctx, q)
}

// Valid implements agent.Lease.
func (h *house) Valid() bool { return h.lease }

// Keep implements agent.Fence.
func (h *house) Keep(ids []api.InstanceID) error {
	if h.keepErr == nil {
		h.kept = slices.Clone(ids)
	}
	return h.keepErr
}

func (h *house) other(id api.NodeID) (*house, error) {
	for _, o := range h.houses {
		if o.id == id && !o.cut && !h.cut && o.Stepper != nil {
			return o, nil
		}
	}
	return nil, errCut
}

// FetchImage implements agent.Remote.
func (h *house) FetchImage(ctx context.Context, from api.NodeID, id api.ImageID) (io.ReadCloser, sds.Image, error) {
	o, err := h.other(from)
	if err != nil {
		return nil, sds.Image{}, err
	}
	return o.Agent().ExportImage(ctx, id)
}

// PrepareMigration, OpenTunnel and FinishMigration implement agent.Peers.
func (h *house) PrepareMigration(_ context.Context, to api.NodeID, r agent.PrepareRequest) (agent.PrepareReply, error) {
	o, err := h.other(to)
	if err != nil {
		return agent.PrepareReply{}, err
	}
	defer h.moment("prepared")
	return o.Agent().HandlePrepareMigration(o.ctx, h.id, r)
}

func (h *house) OpenTunnel(_ context.Context, to api.NodeID, r agent.TunnelRequest) (net.Conn, error) {
	o, err := h.other(to)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	ctx, a := o.ctx, o.Agent()
	go func() { _ = a.HandleTunnel(ctx, h.id, r, far) }()
	return near, nil
}

func (h *house) FinishMigration(_ context.Context, to api.NodeID, r agent.FinishRequest) (agent.FinishReply, error) {
	o, err := h.other(to)
	if err != nil {
		return agent.FinishReply{}, err
	}
	defer h.moment("finished")
	return o.Agent().HandleFinish(o.ctx, h.id, r)
}

// start the node's agent.
func (h *house) start() {
	h.ctx, h.cancel = context.WithCancel(context.Background())
	o := agent.Options{NodeID: h.id, NodeName: string(h.id), DataDir: h.dir, RunDir: filepath.Join(h.dir, "run"), Store: h,
		Machines: h.machines, Migrator: h.machines, Pools: map[string]sds.Driver{api.PoolLocal: h.local}, VGPUs: h.vgpus,
		Accelerator: hypervisor.TCG, Lease: h, Fence: h, Remote: h, Peers: h, BootID: h.boot,
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
	h.Deliver(watchcache.News{Changes: h.seen.All(), All: true})
	h.try(h.Sweep(h.ctx))
	h.try(h.Report(h.ctx))
}

// kill -9 of the agent.
func (h *house) kill() {
	if h.Stepper != nil {
		h.cancel()
		h.Stepper = nil
	}
}

func (h *house) try(err error) {
	if err != nil && !h.cut {
		h.t.Logf("%s: %v", h.id, err)
	}
}

// stored is everything that the store has of what agents look at.
func (h *house) stored() *objects.Set {
	all, err := objects.Read(context.Background(), h.store, agent.Kinds...)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// news are the changes that the agent was not told of, in their order, and at last
// what is gone.
func (h *house) news() []objects.Change {
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

func (h *house) tell(c objects.Change) { h.Deliver(watchcache.News{Changes: []objects.Change{c}}) }

func (h *house) hear() {
	if h.cut {
		return
	}
	for _, c := range h.news() {
		h.tell(c)
	}
}

// work does everything that is due.
func (h *house) work() (did bool) {
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
	h.t.Fatalf("%s never rests: %v", h.id, h.Due(h.now))
	return did
}

// die: the agent is gone and the fence does its work.
func (h *house) die() {
	h.kill()
	h.lapse()
}

// lapse is the lease's end.
func (h *house) lapse() {
	h.lease = false
	domains, _ := h.machines.List(context.Background())
	for _, d := range domains {
		if d.State.Active() && !slices.Contains(h.kept, d.ID) {
			h.machines.Crash(d.ID, "killed")
			h.fenced[d.ID] = h.now
		}
	}
}

func (h *house) starts(id string) (n int) {
	for _, c := range h.machines.Calls() {
		if c == "Load "+id {
			n++
		}
	}
	return n
}

// left returns what there is of instances and of volumes of its own on a node.
func (h *house) left() string {
	domains, _ := h.machines.List(context.Background())
	volumes, _ := h.local.Volumes(context.Background())
	files, _ := filepath.Glob(filepath.Join(h.dir, "*", "*"))
	if len(domains)+len(volumes)+len(files)+len(h.vgpus.slices) == 0 {
		return ""
	}
	return fmt.Sprintf("domains %v, volumes %v, files %v, vGPUs %v", domains, volumes, files, h.vgpus.slices)
}
