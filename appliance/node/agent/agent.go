// Package agent makes one node's part of the cluster's intent so: it watches
// the store for what is assigned to its node, asks drivers for it, and writes
// Status and usage. Only the agent writes Status; it never writes Spec or
// Assignment. It may be killed at any moment: every step is idempotent and is
// decided from what is found on the node, not from memory.
//
//	watch ─► cache ─kick─► reconcile(key): look ─► next (pure) ─► one step ─► report
//	libvirt events ─kick─┘        ▲──────────────────────────────────┘
//
// instance_next.go draws the instance's life cycle, migration_next.go a
// migration's, return.go the return of a lost node. DESIGN.md says why an
// instance never runs twice.
//
// Locks: mu or recordMu before mu before the cache's; no driver, store or
// fence is called with mu held.
package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/reconcile"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	"github.com/basalt-gpu/basalt/sds"
)

// Store is what the agent needs of the cluster's state.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// Changes tells the agent what changes in the cluster (watchcache.Cache).
type Changes interface {
	Follow(ctx context.Context, kinds []objects.Kind, take func(watchcache.News)) error
}

// VGPUs runs the vGPU backends of this node's instances.
type VGPUs interface {
	// GPUs of the node.
	GPUs(ctx context.Context) ([]GPU, error)
	// SetCard decides about a card of the node.
	SetCard(ctx context.Context, device string, c Card) error
	// Ensure that the instance has its slice and a backend that listens on
	// the socket it returns.
	Ensure(ctx context.Context, v VGPU) (socket string, err error)
	// Alive says whether the instance's backend runs.
	Alive(id api.InstanceID) bool
	// Stop ends the backend; the slice and its totals stay.
	Stop(ctx context.Context, id api.InstanceID) error
	// Remove ends the backend and gives the slice back; nothing to do if there is none.
	Remove(ctx context.Context, id api.InstanceID) error
	// List the instances that have a backend or a slice.
	List(ctx context.Context) ([]api.InstanceID, error)
	// Totals of the instance's vGPU since its slice was first made: they only
	// grow. None yet: zero.
	Totals(ctx context.Context, id api.InstanceID) (Totals, error)
	// Exits delivers an instance's id when its backend has ended.
	Exits() <-chan api.InstanceID
}

// GPU of this node, as gpud sees it.
type GPU struct {
	ID, Name, Model, UUID, Driver string // ID is gpud's name of the device
	VRAMBytes, VRAMUsedBytes      int64
	VRAMSwappedBytes              int64 // of VRAMUsedBytes
	Multiprocessors, VGPUs        int64
	Failed                        string // why it does not work; empty: it works
	Throttled                     bool   // hot, and slower by it
	Card
}

// Card is what the card's pool decides about it.
type Card struct {
	// SwapBytes of this node's memory back what the card is promised beyond its
	// own.
	SwapBytes int64
	// Interop: guests may answer the vendor runtime's authenticity query.
	Interop bool
}

// VGPU that an instance should have. Device is gpud's name of the card.
type VGPU struct {
	Instance                api.InstanceID
	Device                  string
	VRAMBytes, SharePercent int64
	Tier                    api.GPUTier
	// VCPUs and MemoryBytes of the instance: what it pays for of the node, besides.
	VCPUs, MemoryBytes int64
}

// Totals of a vGPU: exact, cumulative. Of GPUNanos, PremiumNanos and BasicNanos
// were executed in these tiers.
type Totals struct {
	GPUNanos, PremiumNanos, BasicNanos, VRAMByteSeconds, CopyBytes, Launches uint64
}

// Options of an agent.
type Options struct {
	NodeID   api.NodeID
	NodeName string
	DataDir  string // instances' files
	RunDir   string // sockets: a short path, because a socket's is at most 107 bytes
	Version  string

	Changes  Changes
	Store    Store
	Machines hypervisor.Driver
	Pools    map[string]sds.Driver // by name: api.PoolLocal always, api.PoolShared where there is one; more by set
	VGPUs    VGPUs
	Cards    Cards // nil: no charts of cards

	// In a cluster; nil on a node alone.
	Lease    Lease               // nil: always valid
	Fence    Fence               // nil: nobody kills
	Migrator hypervisor.Migrator // nil: machines do not move while they run
	Remote   Remote              // nil: there is nobody to fetch images from
	Peers    Peers               // nil: nobody to move to
	Keys     Keys                // nil: no disk is encrypted or in Ceph
	Ports    Ports               // nil: no networks
	Ceph     Storage             // nil: this node runs no Ceph
	// WorkerLimits returns why nothing bounds what vGPUs' workers take of this
	// node, or nil. nil: there is nothing to bound.
	WorkerLimits func() error
	// Agreement returns which nodes' copies of the cluster's state differ without a
	// majority, as far as this node has found out, or nil. nil: it never does.
	Agreement func() error
	Backups   Backups // nil: no backups
	// Upgrade is how far this node is with an upgrade; nil: it has no part in any.
	Upgrade func() api.NodeUpgrade
	// Fenced says whether the fence has ended a run of the instance that began
	// at since; an error: it does not answer now. nil: it does not say.
	Fenced func(id api.InstanceID, since time.Time) (bool, error)
	BootID string // of the machine's present boot; empty: the kernel's

	Accelerator hypervisor.Accelerator // until SetAccelerator; empty: no machine starts until then
	VCPUs       int64                  // to give out; 0: 4 for each CPU of the machine
	MemoryBytes int64                  // to give out; 0: the machine's, less 2 GiB
	ToolsDisc   string                 // ISO with the guest tools; empty: none

	StopGrace   time.Duration // from the power button to the plug, 0: 60 s
	ReportEvery time.Duration // node and GPU reports, 0: 10 s
	MeterEvery  time.Duration // usage records, 0: 5 min
	KeepUnknown time.Duration // what a pool has and the store does not know (unknown.go), 0: a week
	Log         *slog.Logger
	Now         func() time.Time // nil: time.Now
	// NoSync: what the agent writes need not outlive a power cut. For
	// simulations, which write much.
	NoSync bool
	// WriteSeed writes an instance's cloud-init disc; nil: cloudinit.WriteSeed.
	WriteSeed func(path string, s cloudinit.Seed) error
	// Go runs what takes long beside everything else; nil: a goroutine.
	Go func(func())
}

// Agent of one node.
type Agent struct {
	*core
	loop *reconcile.Loop

	restores *copies

	unknown     *unknown
	accelerator *acceleration
	epoch       *observedEpoch
	fence       *fenceKeeper
	vgpus       *vgpuSlices
	ports       *portSet
	meter       *usageMeter
	sampler     *sampler
	reporter    *reporter
	disks       *diskSet

	images    *imageReconciler
	snapshots *snapshotReconciler
	backups   *backupReconciler
	targets   *backupTargetReconciler

	mu       sync.Mutex
	stopping map[string]stopping  // instance → since it is being stopped here
	claimed  map[string]int64     // instance → epoch in which its volume was claimed
	arrived  map[string]time.Time // instance → when it was first seen to run here, while it came
	moves    map[string]*move     // migrations from here, by id
}

// New makes an agent; Run starts it.
func New(o Options) *Agent {
	if o.StopGrace == 0 {
		o.StopGrace = time.Minute
	}
	if o.ReportEvery == 0 {
		o.ReportEvery = 10 * time.Second
	}
	if o.MeterEvery == 0 {
		o.MeterEvery = 5 * time.Minute
	}
	if o.KeepUnknown == 0 {
		o.KeepUnknown = keepUnknown
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Go == nil {
		o.Go = func(f func()) { go f() }
	}
	if o.WriteSeed == nil {
		o.WriteSeed = cloudinit.WriteSeed
	}
	if o.BootID == "" {
		o.BootID = bootID()
	}
	co := newCore(o)
	a := &Agent{core: co, accelerator: &acceleration{}, epoch: &observedEpoch{cache: co.cache},
		vgpus: &vgpuSlices{core: co}, ports: &portSet{core: co}, sampler: newSampler(co),
		stopping: map[string]stopping{},
		claimed:  map[string]int64{}, arrived: map[string]time.Time{}, moves: map[string]*move{}}
	a.fence = &fenceKeeper{core: co, epoch: a.epoch}
	a.meter = newUsageMeter(co, a.vgpus)
	a.reporter = &reporter{core: co, epoch: a.epoch, accelerator: a.accelerator, fence: a.fence, meter: a.meter, news: make(chan struct{}, 1)}
	a.unknown = &unknown{core: co, path: filepath.Join(o.DataDir, "unknown.json")}
	a.restores = newCopies(co, maxRestores)
	a.disks = newDiskSet(co)
	a.disks.moving = a.moving
	a.images = newImageReconciler(co, a.reporter)
	a.snapshots = &snapshotReconciler{core: co, disks: a.disks}
	a.backups = &backupReconciler{core: co, disks: a.disks, copies: newCopies(co, maxBackups)}
	a.targets = &backupTargetReconciler{core: co, copies: newCopies(co, maxTargets)}
	a.accelerator.set(o.Accelerator)
	a.loop = reconcile.New(reconcile.Options{Reconcile: a.reconcile, OnError: func(key string, err error) {
		a.log.Warn("step failed, will try again", "key", key, "error", err)
	}})
	a.kick, a.changed = a.loop.Kick, a.heard
	return a
}

// bootID is the kernel's name of the present boot.
func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// SetPool takes a pool in that can be used from now on, instead of one of that
// name; nil: it cannot any more.
func (a *Agent) SetPool(name string, d sds.Driver) { a.pools.set(name, d) }

// SetAccelerator changes how machines run that are started from now on, and what
// the node's status says of it.
func (a *Agent) SetAccelerator(x hypervisor.Accelerator) { a.accelerator.set(x) }

// NoAccelerator says that no machine starts here now, and why. What runs goes on.
func (a *Agent) NoAccelerator(why error) { a.accelerator.unset(why) }

// ReportSoon has the node reported now, and not when it is time to. It does not
// wait for that.
func (a *Agent) ReportSoon() { a.reporter.soon() }

// Samples of an instance, of this node or of one of its cards.
func (a *Agent) Samples(ctx context.Context, of api.Kind, id string, q api.SampleQuery) (api.Samples, error) {
	return a.sampler.samples(ctx, of, id, q)
}

// GPUTenants are the vGPUs on one of this node's cards now, the most VRAM first.
func (a *Agent) GPUTenants(ctx context.Context, gpu api.GPUID) ([]api.GPUTenant, error) {
	return a.sampler.gpuTenants(ctx, gpu)
}

// ExportImage gives another node an image, whichever pool it lies in.
func (a *Agent) ExportImage(ctx context.Context, id api.ImageID) (io.ReadCloser, sds.Image, error) {
	return a.images.export(ctx, id)
}

// PutImage takes an image's bytes from a client.
func (a *Agent) PutImage(ctx context.Context, id api.ImageID, content io.Reader) error {
	return a.images.put(ctx, id, content)
}

// Run until ctx ends. Instances and their vGPUs run on.
func (a *Agent) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, f := range []func(context.Context){a.watch, a.machineEvents, a.backendExits, a.reporter.run, a.orphans, a.meter.run, a.sampler.run, a.loop.Run} {
		wg.Add(1)
		go func() { defer wg.Done(); f(ctx) }()
	}
	wg.Wait()
	a.jobs.wait()
	for _, c := range []*copies{a.backups.copies, a.restores, a.targets.copies} {
		c.wait()
	}
	return ctx.Err()
}

func (a *Agent) watch(ctx context.Context) {
	_ = a.o.Changes.Follow(ctx, Kinds, a.take) // ends with ctx
}

func (a *Agent) machineEvents(ctx context.Context) {
	for ctx.Err() == nil {
		events, err := a.o.Machines.Events(ctx)
		if err != nil {
			a.log.Warn("hypervisor events", "error", err)
			sleep(ctx, time.Second)
			continue
		}
		for e := range events {
			a.machineEvent(e)
		}
	}
}

func (a *Agent) machineEvent(e hypervisor.Event) {
	if e.Type != hypervisor.EventResync {
		a.kick(key(api.KindInstance, string(e.ID)))
		return
	}
	for _, key := range a.cache.instanceKeys() {
		a.kick(key)
	}
}

// take in what has changed in the store: the fence hears of it before anything is
// done about it.
func (a *Agent) take(n watchcache.News) { a.heard(a.cache.take(n)) }

func (a *Agent) heard(keys []string) {
	if len(keys) == 0 {
		return
	}
	if err := a.fence.keep(false); err != nil {
		a.log.Warn("telling the fence what to keep", "error", err) // each start and report tries again
	}
	for _, key := range keys {
		a.kick(key)
	}
}

func (a *Agent) backendExits(ctx context.Context) {
	if a.o.VGPUs == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-a.o.VGPUs.Exits():
			a.backendExit(id)
		}
	}
}

// backendExit looks at a running instance. One that ends while it is being
// started is the start's failure: that is tried again with growing waits,
// which a kick would cut short.
func (a *Agent) backendExit(id api.InstanceID) {
	if in, ok := get(a.cache, a.cache.instances, string(id)); ok && in.Status.Phase == api.InstanceRunning {
		a.kick(key(api.KindInstance, string(id)))
	}
}

// syncLook is how often a key waits for the first snapshot; staleLook is when
// one is decided on again whose news were old.
const (
	syncLook  = 100 * time.Millisecond
	staleLook = 20 * time.Millisecond
	laterLook = time.Second
)

func (a *Agent) reconcile(ctx context.Context, k string) (time.Duration, error) {
	if !a.cache.isSynced() {
		return syncLook, nil
	}
	again, err := a.reconcileKind(ctx, k)
	switch {
	case errors.Is(err, errStale):
		return staleLook, nil
	case errors.Is(err, errLater):
		return laterLook, nil
	}
	return again, err
}

func (a *Agent) reconcileKind(ctx context.Context, k string) (time.Duration, error) {
	kind, id := splitKey(k)
	switch kind {
	case api.KindInstance:
		return a.reconcileInstance(ctx, id)
	case api.KindVolume:
		return a.reconcileVolume(ctx, id)
	case api.KindSnapshot:
		return a.snapshots.reconcile(ctx, id)
	case api.KindBackup:
		return a.backups.reconcile(ctx, id)
	case api.KindBackupTarget:
		return a.targets.reconcile(ctx, id)
	case api.KindImage:
		return a.images.reconcile(ctx, id)
	case api.KindNode:
		if id == string(a.o.NodeID) {
			return a.reconcileNode(ctx)
		}
	case api.KindMigration:
		return a.reconcileMigration(ctx, id)
	}
	return 0, nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
