package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// vgpus is an in-memory fake of gpud and its backends.
type vgpus struct {
	mu     sync.Mutex
	alive  map[api.InstanceID]bool
	slices map[api.InstanceID]bool
	totals map[api.InstanceID]agent.Totals
	exits  chan api.InstanceID
	fault  func() error
	card   agent.Card
	failed string // why the card failed
	hot    bool

	unusable []string       // the node's unusable cards
	guest    agent.GuestGPU // what each backend has seen
}

func newVGPUs() *vgpus {
	return &vgpus{alive: map[api.InstanceID]bool{}, slices: map[api.InstanceID]bool{}, totals: map[api.InstanceID]agent.Totals{}, exits: make(chan api.InstanceID, 16), guest: agent.GuestGPU{Known: true, Driver: true, Library: true}}
}

func (v *vgpus) locked(f func()) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fault != nil {
		if err := v.fault(); err != nil {
			return err
		}
	}
	f()
	return nil
}

func (v *vgpus) GPUs(context.Context) ([]agent.GPU, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return []agent.GPU{{ID: "soft0", Name: "soft0", VRAMBytes: 8 << 30, Card: v.card, Failed: v.failed, Throttled: v.hot, Celsius: 61, Milliwatts: 250_000}}, nil
}

func (v *vgpus) Unusable(context.Context) (all []string, err error) {
	return all, v.locked(func() { all = v.unusable })
}

func (v *vgpus) SetCard(_ context.Context, _ string, c agent.Card) error {
	return v.locked(func() { v.card = c })
}

func (v *vgpus) Ensure(_ context.Context, g agent.VGPU) (string, error) {
	return "/run/" + string(g.Instance), v.locked(func() { v.alive[g.Instance], v.slices[g.Instance] = true, true })
}

func (v *vgpus) Alive(id api.InstanceID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.alive[id]
}

func (v *vgpus) Guest(api.InstanceID) (g agent.GuestGPU, err error) {
	return g, v.locked(func() { g = v.guest })
}

func (v *vgpus) Stop(_ context.Context, id api.InstanceID) error {
	return v.locked(func() { delete(v.alive, id) })
}

func (v *vgpus) Remove(_ context.Context, id api.InstanceID) error {
	return v.locked(func() { delete(v.alive, id); delete(v.slices, id) })
}

func (v *vgpus) List(context.Context) (ids []api.InstanceID, err error) {
	return ids, v.locked(func() {
		for id := range v.slices {
			ids = append(ids, id)
		}
	})
}

func (v *vgpus) Totals(_ context.Context, id api.InstanceID) (t agent.Totals, err error) {
	return t, v.locked(func() { t = v.totals[id] })
}

func (v *vgpus) Exits() <-chan api.InstanceID { return v.exits }

// node is one node over fakes, with an agent that can be killed and started.
type node struct {
	t        *testing.T
	store    *memstore.Store
	machines *hypfake.Driver
	volumes  *sdsfake.Store
	vgpus    *vgpus
	dir      string
	opts     func(*agent.Options)

	cache *watchcache.Cache
	agent *agent.Agent
	kill  func()
}

func newNode(t *testing.T, g hypfake.Guest) *node {
	n := &node{t: t, store: memstore.New(), machines: hypfake.New(g), volumes: sdsfake.New(sds.Limits{}), vgpus: newVGPUs(), dir: t.TempDir()}
	t.Cleanup(func() {
		if n.kill != nil {
			n.kill()
		}
	})
	return n
}

// prepare creates an agent that is not running yet.
func (n *node) prepare() {
	n.cache = watchcache.New(n.store, slog.New(slog.DiscardHandler), agent.Kinds...)
	o := agent.Options{NodeID: "node-1", NodeName: "n1", DataDir: n.dir, RunDir: filepath.Join(n.dir, "run"), Changes: n.cache, Store: n.store,
		Machines: n.machines, Pools: map[string]sds.Driver{api.PoolLocal: n.volumes}, VGPUs: n.vgpus, Accelerator: hypervisor.TCG,
		StopGrace: 50 * time.Millisecond, ReportEvery: 50 * time.Millisecond, MeterEvery: 20 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler)}
	if n.opts != nil {
		n.opts(&o)
	}
	n.agent = agent.New(o)
}

func (n *node) start() {
	ctx, cancel := context.WithCancel(context.Background())
	n.prepare()
	done := make(chan struct{})
	go func() { _ = n.agent.Run(ctx); close(done) }()
	followed := make(chan struct{})
	go func() { _ = n.cache.Run(ctx); close(followed) }()
	n.kill = func() { cancel(); <-done; <-followed; n.kill = nil }
}

func (n *node) apply(cmds ...api.Command) {
	n.t.Helper()
	if _, err := n.store.Apply(context.Background(), api.Batch{At: time.Now().UTC(), Commands: cmds}); err != nil {
		n.t.Fatal(err)
	}
}

// raw returns a raw disk image: a boot sector.
func raw() []byte {
	b := make([]byte, 1<<20)
	b[510], b[511] = 0x55, 0xaa
	return b
}

func (n *node) image() {
	n.volumes.Serve("https://images.example/debian", raw())
	n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "debian", Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/debian"})})
	n.until("image ready", func() bool { return n.imageStatus("img-1").Phase == api.ImageReady })
}

func (n *node) imageStatus(id string) api.ImageStatus {
	o, err := n.store.Get(context.Background(), api.KindImage, id)
	if err != nil {
		return api.ImageStatus{}
	}
	i, err := api.Decode[api.Image](o)
	if err != nil {
		n.t.Fatal(err)
	}
	return i.Status
}

// instance creates an instance with its root volume, already assigned to this node.
func (n *node) instance(id string) {
	fin := []string{api.FinalizerAgent}
	n.until("GPU reported", func() bool {
		_, err := n.store.Get(context.Background(), api.KindGPU, "gpu-node-1-soft0")
		return err == nil
	})
	n.apply(
		api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: id, Organization: "org-1", Project: "prj-1", Finalizers: fin,
			Data: api.Encode(api.InstanceSpec{Flavor: "flv-1", Image: "img-1", Vgpu: &api.VGPUSpec{VramBytes: 1 << 30}})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-" + id, Name: id, Organization: "org-1", Project: "prj-1", Finalizers: fin,
			Data: api.Encode(api.VolumeSpec{Image: "img-1", Instance: api.InstanceID(id), Root: true, SizeBytes: 2 << 20})},
		api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: "vol-" + id, Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Node: "node-1"})},
		api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.InstanceAssignment{
			Node: "node-1", Generation: 1, Vcpus: 2, MemoryBytes: 1 << 30, RootVolume: api.VolumeID("vol-" + id), Gpu: "gpu-node-1-soft0", VgpuVramBytes: 1 << 30})},
	)
}

func (n *node) get(id string) (api.Instance, bool) {
	o, err := n.store.Get(context.Background(), api.KindInstance, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return api.Instance{}, false
	}
	if err != nil {
		n.t.Fatal(err)
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		n.t.Fatal(err)
	}
	return in, true
}

func (n *node) spec(id string, change func(*api.InstanceSpec)) {
	in, _ := n.get(id)
	change(&in.Spec)
	n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(in.Spec)})
	in, _ = n.get(id)
	in.Assignment.Generation = in.Meta.Generation // the planner has seen it
	n.apply(api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(in.Assignment)})
}

func (n *node) until(what string, f func() bool) {
	n.t.Helper()
	defer func() {
		if n.t.Failed() {
			in, _ := n.get("ins-1")
			n.t.Logf("ins-1: %+v; calls: %v", in.Status, n.machines.Calls())
		}
	}()
	patience.Until(n.t, time.Minute, what, f)
}

func (n *node) phase(id string, p api.InstancePhase) {
	n.t.Helper()
	n.until(fmt.Sprintf("%s is %s", id, p), func() bool { in, _ := n.get(id); return in.Status.Phase == p })
}

// clean fails the test if anything of any instance is left on the node.
func (n *node) clean() {
	n.t.Helper()
	domains, _ := n.machines.List(context.Background())
	volumes, _ := n.volumes.Volumes(context.Background())
	files, _ := filepath.Glob(filepath.Join(n.dir, "*", "*"))
	if len(domains)+len(volumes)+len(n.vgpus.alive)+len(n.vgpus.slices)+len(files) != 0 {
		n.t.Errorf("left behind: domains %v, volumes %v, vGPUs %v %v, files %v", domains, volumes, n.vgpus.alive, n.vgpus.slices, files)
	}
}

func (n *node) remove(id string) {
	n.apply(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision},
		api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-" + id, Expect: api.AnyRevision})
	n.until("instance and root volume removed", func() bool {
		_, there := n.get(id)
		_, err := n.store.Get(context.Background(), api.KindVolume, "vol-"+id)
		return !there && err != nil
	})
}

func TestCreateStopStartDelete(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	n.image()
	n.instance("ins-1")
	n.phase("ins-1", api.InstanceRunning)
	_, running, _ := n.machines.Domain("ins-1")
	if running.VCPUs != 2 || running.VGPUSocket == "" || len(running.Disks) != 1 || running.Disks[0].Path == "" {
		t.Errorf("domain of ins-1 = %+v, want 2 vCPUs, a vGPU socket and one disk with a path", running)
	}
	n.spec("ins-1", func(s *api.InstanceSpec) { s.Power = api.PowerStopped })
	n.phase("ins-1", api.InstanceStopped)
	n.spec("ins-1", func(s *api.InstanceSpec) { s.Power = api.PowerRunning })
	n.phase("ins-1", api.InstanceRunning)
	n.remove("ins-1")
	n.clean()
}

// TestReinstall applies the commands of a reinstall to the node: the old disk is
// deleted while the instance is stopped, and the instance starts from the new one.
func TestReinstall(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	n.image()
	n.instance("ins-1")
	n.phase("ins-1", api.InstanceRunning)
	_, before, _ := n.machines.Domain("ins-1")
	n.spec("ins-1", func(s *api.InstanceSpec) { s.Power = api.PowerStopped })
	n.phase("ins-1", api.InstanceStopped)
	n.apply(
		api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-ins-1", Expect: api.AnyRevision, Data: api.Encode(api.VolumeSpec{Image: "img-1", SizeBytes: 2 << 20})},
		api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-ins-1", Expect: api.AnyRevision},
		api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-new", Name: "new", Organization: "org-1", Project: "prj-1", Finalizers: []string{api.FinalizerAgent},
			Data: api.Encode(api.VolumeSpec{Image: "img-1", Instance: "ins-1", Root: true, SizeBytes: 2 << 20})},
		api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: "vol-new", Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Node: "node-1"})})
	in, _ := n.get("ins-1")
	in.Assignment.RootVolume = "vol-new"
	n.apply(api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision, Data: api.Encode(in.Assignment)})
	n.until("the old root volume removed", func() bool {
		_, err := n.store.Get(context.Background(), api.KindVolume, "vol-ins-1")
		return api.CodeOf(err) == api.CodeNotFound
	})
	n.spec("ins-1", func(s *api.InstanceSpec) { s.Power = api.PowerRunning })
	n.phase("ins-1", api.InstanceRunning)
	_, after, _ := n.machines.Domain("ins-1")
	if len(after.Disks) != 1 || after.Disks[0].Path == before.Disks[0].Path || after.Disks[0].Serial != before.Disks[0].Serial {
		t.Errorf("disks after the reinstall = %+v, before = %+v; want another path with the same serial", after.Disks, before.Disks)
	}
	n.apply(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision},
		api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-new", Expect: api.AnyRevision})
	n.until("instance and new root volume removed", func() bool {
		_, there := n.get("ins-1")
		_, err := n.store.Get(context.Background(), api.KindVolume, "vol-new")
		return !there && err != nil
	})
	n.clean()
}

func TestAnIgnoredButtonBecomesThePlug(t *testing.T) {
	n := newNode(t, hypfake.Guest{IgnoreButton: true})
	n.start()
	n.image()
	n.instance("ins-1")
	n.phase("ins-1", api.InstanceRunning)
	n.spec("ins-1", func(s *api.InstanceSpec) { s.Power = api.PowerStopped })
	n.phase("ins-1", api.InstanceStopped)
	if calls := strings.Join(n.machines.Calls(), ","); !strings.Contains(calls, "Destroy ins-1") {
		t.Errorf("hypervisor calls = %s, want a Destroy of ins-1", calls)
	}
}

func TestStatusIsAsObserved(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	n.image()
	n.instance("ins-1")
	n.phase("ins-1", api.InstanceRunning)
	n.machines.Crash("ins-1", "killed")
	n.phase("ins-1", api.InstanceFailed)
	n.spec("ins-1", func(s *api.InstanceSpec) { s.Restarts++ })
	n.phase("ins-1", api.InstanceRunning)
	n.machines.PowerOff("ins-1")
	n.phase("ins-1", api.InstanceStopped)
	n.spec("ins-1", func(s *api.InstanceSpec) { s.Restarts++ })
	n.phase("ins-1", api.InstanceRunning)

	n.vgpus.mu.Lock()
	delete(n.vgpus.alive, "ins-1")
	n.vgpus.mu.Unlock()
	n.vgpus.exits <- "ins-1"
	n.until("the exited vGPU backend reported in lastError", func() bool {
		in, _ := n.get("ins-1")
		return strings.Contains(in.Status.LastError, "vGPU") && in.Status.Phase == api.InstanceRunning
	})
}

func TestFailedStepIsReportedAndRetried(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	n.image()
	n.volumes.SetFree(0)
	n.instance("ins-1")
	n.until("the full disk reported in the volume's status", func() bool {
		o, err := n.store.Get(context.Background(), api.KindVolume, "vol-ins-1")
		return err == nil && bytes.Contains(o.Status, []byte("full"))
	})
	n.volumes.SetFree(1 << 40)
	n.phase("ins-1", api.InstanceRunning)
}

func TestABadImageSaysWhy(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "bad", Data: api.Encode(api.ImageSpec{Format: "qcow2"})})
	n.until("the image pending", func() bool { return n.imageStatus("img-2").Phase == api.ImagePending })
	if err := n.agent.PutImage(context.Background(), "img-2", strings.NewReader("<html>not an image</html>")); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("PutImage of an HTML page: error %v, want code %s", err, api.CodeInvalid)
	}
	if st := n.imageStatus("img-2"); st.Phase != api.ImageFailed || st.LastError == "" {
		t.Errorf("status of the bad image = %+v, want phase %s with a lastError", st, api.ImageFailed)
	}
}

func TestOrphansAreRemoved(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	ctx := context.Background()
	orphan := hypervisor.Domain{ID: "ins-0000", Node: "node-1", Name: "x", VCPUs: 1, MemoryBytes: 64 << 20, Accelerator: hypervisor.TCG, SerialSocket: "/run/s", SerialLog: "/l"}
	if err := n.machines.Define(ctx, orphan); err != nil {
		t.Fatal(err)
	}
	if err := n.machines.Start(ctx, orphan.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := n.volumes.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-0000", SizeBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	n.vgpus.slices["ins-0000"] = true
	if err := os.MkdirAll(filepath.Join(n.dir, "instances", "ins-0000"), 0o755); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.until("orphans removed but for one leak", func() bool {
		leaks, err := n.agent.Leaks(ctx, "node-1")
		return err == nil && len(leaks) == 1
	})
	if volumes, _ := n.volumes.Volumes(ctx); len(volumes) != 1 {
		t.Errorf("volumes after the sweep = %v, want the unknown one kept (the store may have lost its object)", volumes)
	}
	if err := n.volumes.DeleteVolume(ctx, "vol-0000"); err != nil {
		t.Fatal(err)
	}
	n.clean()
}

// TestKilledAnywhereEndsRight kills the agent repeatedly while drivers fail at
// random; in the end everything must match the spec, with nothing left over.
func TestKilledAnywhereEndsRight(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewSource(int64(seed)))
			faults := rand.New(rand.NewSource(int64(seed) + 1000))
			var mu sync.Mutex
			flaky := func() error {
				mu.Lock()
				defer mu.Unlock()
				if faults.Intn(6) == 0 {
					return errors.New("injected")
				}
				return nil
			}
			n := newNode(t, hypfake.Guest{IgnoreButton: seed%2 == 1})
			n.start()
			n.image()
			n.instance("ins-1")
			n.machines.Fault(func(string, api.InstanceID) error { return flaky() })
			n.volumes.Fault(func(string, string) error { return flaky() })
			n.vgpus.mu.Lock()
			n.vgpus.fault = flaky
			n.vgpus.mu.Unlock()
			for range 12 {
				time.Sleep(time.Duration(rng.Intn(30)) * time.Millisecond)
				n.kill()
				if rng.Intn(2) == 0 {
					n.spec("ins-1", func(s *api.InstanceSpec) {
						if rng.Intn(3) == 0 {
							s.Power = api.PowerStopped
						} else {
							s.Power = api.PowerRunning
							s.Restarts++
						}
					})
				}
				n.start()
			}
			n.machines.Fault(nil)
			n.volumes.Fault(nil)
			n.vgpus.mu.Lock()
			n.vgpus.fault = nil
			n.vgpus.mu.Unlock()
			n.spec("ins-1", func(s *api.InstanceSpec) { s.Power = api.PowerRunning; s.Restarts++ })
			in, _ := n.get("ins-1")
			n.until("all restarts done, running", func() bool {
				now, _ := n.get("ins-1")
				return now.Status.Restarts == in.Spec.Restarts && now.Status.Phase == api.InstanceRunning
			})
			n.remove("ins-1")
			n.clean()
		})
	}
}

// TestNodeReportsUsageWatermark checks that the node reports up to when it has
// recorded all usage, and that a GPU that does not answer holds that time back,
// also across a restart of the agent.
func TestNodeReportsUsageWatermark(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	n.image()
	n.instance("ins-1")
	n.phase("ins-1", api.InstanceRunning)
	self := func() api.NodeStatus {
		o, err := n.store.Get(context.Background(), api.KindNode, "node-1")
		if err != nil {
			return api.NodeStatus{}
		}
		node, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		return node.Status
	}
	begun := self().MeteredAt
	n.until("usage recorded after the start", func() bool { return self().MeteredAt.After(begun) })
	n.vgpus.mu.Lock()
	n.vgpus.fault = func() error { return errors.New("gpud hangs") }
	n.vgpus.mu.Unlock()
	var held time.Time
	n.until("meteredAt held back while gpud hangs", func() bool {
		st := self()
		was := held
		held = st.MeteredAt
		return was.Equal(held) && st.SeenAt.Sub(held) > 300*time.Millisecond
	})
	n.kill()
	n.start()
	seen := self().SeenAt
	n.until("another report after the restart", func() bool { return self().SeenAt.After(seen) })
	if got := self().MeteredAt; !got.Equal(held) {
		t.Errorf("meteredAt after the restart = %v, want it held at %v", got, held)
	}
	n.vgpus.mu.Lock()
	n.vgpus.fault = nil
	n.vgpus.mu.Unlock()
	n.until("meteredAt advancing again", func() bool { return self().MeteredAt.After(held) })
}

// TestUsageIsExactAcrossKills checks that the usage in the store is exactly what
// gpud counted, however often the agent is killed in between.
func TestUsageIsExactAcrossKills(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	n.image()
	n.instance("ins-1")
	n.phase("ins-1", api.InstanceRunning)
	var total uint64
	rng := rand.New(rand.NewSource(1))
	for range 15 {
		n.vgpus.mu.Lock()
		total += uint64(rng.Intn(1e9))
		n.vgpus.totals["ins-1"] = agent.Totals{GPUNanos: total}
		n.vgpus.mu.Unlock()
		time.Sleep(time.Duration(rng.Intn(40)) * time.Millisecond)
		n.kill()
		n.start()
	}
	n.remove("ins-1") // the last usage is recorded before the instance is removed
	var sum uint64
	page, err := n.store.Records(context.Background(), api.RecordQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Items {
		if r.Spec.Meter == api.MeterGPU {
			sum += uint64(r.Spec.Quantity)
		}
	}
	if sum != total {
		t.Errorf("recorded GPU time = %d ns, want %d ns (what gpud counted)", sum, total)
	}
}
