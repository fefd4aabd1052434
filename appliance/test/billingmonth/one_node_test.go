package billingmonth

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// testNode is one node: its agent and the state that survives the agent.
type testNode struct {
	w            *world
	id           api.NodeID
	machines     *hypfake.Driver
	local        *sdsfake.Store
	shared       *sdsfake.Store
	cards        *cards
	dir          string
	boots        int
	cut          bool  // disconnected from the store
	seenRevision int64 // the store's revision that the agent has received

	*agent.Stepper              // nil: its agent is not running
	seen           *objects.Set // the objects that the agent has received
	cancel         context.CancelFunc
	ctx            context.Context
}

func newTestNode(w *world, id api.NodeID) *testNode {
	h := &testNode{w: w, id: id, machines: hypfake.New(hypfake.Guest{}), local: sdsfake.New(sds.Limits{}), shared: w.shared.Join(),
		cards: newCards(), dir: w.t.TempDir(), boots: 1}
	h.local.SetNow(w.Now)
	h.start()
	return h
}

// start starts the agent.
func (h *testNode) start() {
	h.ctx, h.cancel = context.WithCancel(context.Background())
	boot := strings.Repeat("i", h.boots)
	h.Stepper, h.seen = agent.NewStepper(agent.Options{
		NodeID: h.id, NodeName: string(h.id), DataDir: h.dir, RunDir: filepath.Join(h.dir, "run"), Store: h,
		Machines: h.machines, Migrator: h.machines, VGPUs: h.cards, BootID: boot,
		Pools:       map[string]sds.Driver{api.PoolLocal: h.local, api.PoolShared: h.shared},
		Accelerator: hypervisor.TCG, VCPUs: 16, MemoryBytes: 64 << 30, Log: slog.New(slog.DiscardHandler), Now: h.w.Now, NoSync: true,
		Go:        func(f func()) { f() },
		WriteSeed: func(path string, s cloudinit.Seed) error { return os.WriteFile(path, []byte(s.Instance), 0o600) },
		Fenced:    func(api.InstanceID, time.Time) (bool, error) { return false, nil },
	}), objects.NewSet(agent.Kinds...)
	h.seenRevision = 0
	h.receiveChanges()
	h.Deliver(watchcache.Update{Changes: h.seen.All(), All: true})
	h.logError(h.Sweep(h.ctx))
	h.logError(h.Report(h.ctx))
}

// kill ends the agent as SIGKILL does; its instances continue to run.
func (h *testNode) kill() {
	h.cancel()
	h.Stepper = nil
}

// powerOff simulates a power failure that the other nodes have confirmed by fencing.
func (h *testNode) powerOff() {
	h.kill()
	h.boots++
	domains, _ := h.machines.List(context.Background())
	for _, d := range domains {
		if d.State.Active() {
			h.machines.Crash(d.ID, "power")
		}
	}
	h.cards = newCards()
	h.w.health[string(h.id)] = plan.Health{Suspect: true, Fenced: true, Why: "no heartbeat"}
}

// powerOn starts the node after powerOff.
func (h *testNode) powerOn() {
	delete(h.w.health, string(h.id))
	h.start()
}

var errCut = api.Errorf(api.CodeUnavailable, "cut off")

// Apply, Get and List implement the agent's store.
func (h *testNode) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if h.cut {
		return nil, errCut
	}
	objects, err := h.w.store.Apply(ctx, b)
	return objects, errors.Join(err, ctx.Err()) // fails if the agent was killed meanwhile
}

func (h *testNode) Get(ctx context.Context, k api.Kind, id string) (api.Object, error) {
	if h.cut {
		return api.Object{}, errCut
	}
	return h.w.store.Get(ctx, k, id)
}

func (h *testNode) List(ctx context.Context, q api.ListQuery) (api.ListPage, error) {
	if h.cut {
		return api.ListPage{}, errCut
	}
	return h.w.store.List(ctx, q)
}

func (h *testNode) logError(err error) {
	if err != nil && !h.cut {
		h.w.t.Logf("%s %s: %v", h.w.Now().Format(time.RFC3339), h.id, err)
	}
}

// receiveChanges delivers the changes of the store to the agent.
func (h *testNode) receiveChanges() {
	if h.cut || h.seenRevision == h.w.store.Revision() {
		return
	}
	h.seenRevision = h.w.store.Revision()
	now, err := objects.Read(context.Background(), h.w.store, agent.Kinds...)
	if err != nil {
		h.w.t.Fatal(err)
	}
	h.Deliver(watchcache.Update{Changes: h.seen.Diff(now)})
	h.seen = now
}

// reconcileAll reconciles everything that is due, and reports whether there was anything.
func (h *testNode) reconcileAll() (did bool) {
	if h.Stepper == nil {
		return false
	}
	h.receiveChanges()
	for range 1000 {
		due := h.Due(h.w.Now())
		if len(due) == 0 {
			return did
		}
		did = true
		_, err := h.Reconcile(h.ctx, due[0])
		h.logError(err)
	}
	h.w.t.Fatalf("node %s still has due keys after 1000 reconciliations: %v", h.id, h.Due(h.w.Now()))
	return did
}

func (h *testNode) meter() {
	if h.Stepper != nil {
		h.logError(h.Report(h.ctx))
		h.logError(h.Meter(h.ctx))
	}
}

// run lets the running instances run for d, and records their usage.
func (h *testNode) run(d time.Duration) {
	domains, _ := h.machines.List(context.Background())
	for _, dom := range domains {
		if dom.State != hypervisor.Running {
			continue
		}
		h.w.truth.ran(h.w, string(dom.ID), d)
		if n := h.cards.work(dom.ID, d); n > 0 {
			h.w.truth.add(string(dom.ID), api.MeterGPU, float64(n))
		}
	}
}
