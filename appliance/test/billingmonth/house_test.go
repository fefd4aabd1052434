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

// house is one node: what survives its agent, and its agent.
type house struct {
	w        *world
	id       api.NodeID
	machines *hypfake.Driver
	local    *sdsfake.Store
	shared   *sdsfake.Store
	cards    *cards
	dir      string
	boots    int
	cut      bool  // from the store
	heard    int64 // revision

	*agent.Stepper              // nil: its agent is dead
	seen           *objects.Set // what the agent was told
	cancel         context.CancelFunc
	ctx            context.Context
}

func newHouse(w *world, id api.NodeID) *house {
	h := &house{w: w, id: id, machines: hypfake.New(hypfake.Guest{}), local: sdsfake.New(sds.Limits{}), shared: w.shared.Join(),
		cards: newCards(), dir: w.t.TempDir(), boots: 1}
	h.local.SetNow(w.Now)
	h.start()
	return h
}

// start its agent.
func (h *house) start() {
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
	h.heard = 0
	h.hear()
	h.Deliver(watchcache.News{Changes: h.seen.All(), All: true})
	h.try(h.Sweep(h.ctx))
	h.try(h.Report(h.ctx))
}

// kill -9 of the agent: its machines run on.
func (h *house) kill() {
	h.cancel()
	h.Stepper = nil
}

// die: the node loses its power, and the others are sure of it.
func (h *house) die() {
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

// rise again.
func (h *house) rise() {
	delete(h.w.health, string(h.id))
	h.start()
}

var errCut = api.Errorf(api.CodeUnavailable, "cut off")

// Apply, Get, List and Watch are the agent's store.
func (h *house) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if h.cut {
		return nil, errCut
	}
	objects, err := h.w.store.Apply(ctx, b)
	return objects, errors.Join(err, ctx.Err()) // of one that is dead by now
}

func (h *house) Get(ctx context.Context, k api.Kind, id string) (api.Object, error) {
	if h.cut {
		return api.Object{}, errCut
	}
	return h.w.store.Get(ctx, k, id)
}

func (h *house) List(ctx context.Context, q api.ListQuery) (api.ListPage, error) {
	if h.cut {
		return api.ListPage{}, errCut
	}
	return h.w.store.List(ctx, q)
}

func (h *house) try(err error) {
	if err != nil && !h.cut {
		h.w.t.Logf("%s %s: %v", h.w.Now().Format(time.RFC3339), h.id, err)
	}
}

// hear what has changed.
func (h *house) hear() {
	if h.cut || h.heard == h.w.store.Revision() {
		return
	}
	h.heard = h.w.store.Revision()
	now, err := objects.Read(context.Background(), h.w.store, agent.Kinds...)
	if err != nil {
		h.w.t.Fatal(err)
	}
	h.Deliver(watchcache.News{Changes: h.seen.Diff(now)})
	h.seen = now
}

// work does everything that is due.
func (h *house) work() (did bool) {
	if h.Stepper == nil {
		return false
	}
	h.hear()
	for range 1000 {
		due := h.Due(h.w.Now())
		if len(due) == 0 {
			return did
		}
		did = true
		_, err := h.Reconcile(h.ctx, due[0])
		h.try(err)
	}
	h.w.t.Fatalf("%s never rests: %v", h.id, h.Due(h.w.Now()))
	return did
}

func (h *house) meter() {
	if h.Stepper != nil {
		h.try(h.Report(h.ctx))
		h.try(h.Meter(h.ctx))
	}
}

// run lets what is on run for so long, and notes it.
func (h *house) run(d time.Duration) {
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
