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
// migration's, node.go the return of a lost node. DESIGN.md says why an
// instance never runs twice.
//
// Each kind has a reconciler, found in one table; what is done periodically is a
// type of its own too (usageMeter, sampler, reporter, orphanSweeper). Each owns
// its state, and embeds core for what all need.
//
// Locks: every type's mu guards that type's state only, and no other type's mu is
// taken, and no driver, store or fence called, while it is held; the cache's may
// be. Exceptions are fenceKeeper.mu, held while the fence is told, and
// usageMeter.recordMu, held while use is recorded.
package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/reconcile"
	"github.com/basalt-gpu/basalt/hypervisor"
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

// reconciler makes the objects of one kind so, by one step at a time: it is
// called with an object's id when something about it has changed, and again
// after the time that it returns; 0: when something changes. It owns what this
// process remembers of the kind.
type reconciler interface {
	reconcile(ctx context.Context, id string) (again time.Duration, err error)
}

// Agent of one node: a reconciler for each kind, and what is done periodically.
type Agent struct {
	*core
	loop  *reconcile.Loop
	kinds map[api.Kind]reconciler

	accelerator *acceleration
	images      *imageReconciler
	volumes     *volumeReconciler
	backups     *backupReconciler
	targets     *backupTargetReconciler
	incoming    *migrationTarget

	watcher  *watcher
	meter    *usageMeter
	sampler  *sampler
	reporter *reporter
	hardware *hardwareWatch
	sweeper  *orphanSweeper
}

// New makes an agent; Run starts it.
func New(o Options) *Agent {
	o.setDefaults()
	co := newCore(o)
	a := &Agent{core: co, accelerator: &acceleration{}, sampler: newSampler(co)}
	a.accelerator.set(o.Accelerator)
	epoch := &observedEpoch{cache: co.cache}
	fence := &fenceKeeper{core: co, epoch: epoch}
	vgpus, ports, disks := &vgpuSlices{core: co}, &portSet{core: co}, newDiskSet(co)
	unknown := &unknown{core: co, path: filepath.Join(o.DataDir, "unknown.json")}
	a.meter = newUsageMeter(co, vgpus)
	a.reporter = &reporter{core: co, epoch: epoch, accelerator: a.accelerator, fence: fence, meter: a.meter, sampler: a.sampler, news: make(chan struct{}, 1)}
	a.hardware = &hardwareWatch{core: co, accelerator: a.accelerator, soon: a.reporter.soon}
	a.reporter.hardware = a.hardware
	a.watcher = &watcher{core: co, fence: fence}

	classes := &machineClasses{core: co, accelerator: a.accelerator}
	domains := &domainBuilder{core: co, disks: disks, ports: ports, vgpus: vgpus, accelerator: a.accelerator}
	a.images = &imageReconciler{core: co, reporter: a.reporter, running: map[string]bool{}}
	a.backups = &backupReconciler{core: co, disks: disks, copies: newCopies(co, maxBackups)}
	a.targets = &backupTargetReconciler{core: co, copies: newCopies(co, maxTargets)}
	a.incoming = &migrationTarget{core: co, epoch: epoch, fence: fence, disks: disks, ports: ports, domains: domains, classes: classes, arrived: map[string]time.Time{}}
	migrations := &migrationReconciler{core: co, fence: fence, disks: disks, meter: a.meter, target: a.incoming, moves: map[string]*move{}}
	a.incoming.migrations, disks.migrations = migrations, migrations
	attacher := &volumeAttacher{core: co, fence: fence, disks: disks, migrations: migrations}
	a.volumes = &volumeReconciler{core: co, fence: fence, disks: disks, meter: a.meter, unknown: unknown, migrations: migrations,
		images: a.images, backups: a.backups, attacher: attacher, restores: newCopies(co, maxRestores)}
	attacher.volumes = a.volumes
	instances := &instanceReconciler{core: co, reports: &guestReports{core: co, of: map[api.InstanceID]*asked{}}, accelerator: a.accelerator, fence: fence, disks: disks, ports: ports, vgpus: vgpus, meter: a.meter,
		domains: domains, classes: classes, migrations: migrations, incoming: a.incoming, volumes: a.volumes, variables: &variablesKeeper{core: co, kept: map[api.InstanceID]variablesStamp{}}, stopping: map[string]stopping{}, claimed: map[string]int64{}}
	a.sweeper = &orphanSweeper{core: co, vgpus: vgpus, ports: ports, unknown: unknown, instances: instances, volumes: a.volumes, backups: a.backups}
	a.kinds = map[api.Kind]reconciler{
		api.KindInstance:     instances,
		api.KindVolume:       a.volumes,
		api.KindSnapshot:     &snapshotReconciler{core: co, disks: disks},
		api.KindBackup:       a.backups,
		api.KindBackupTarget: a.targets,
		api.KindImage:        a.images,
		api.KindMigration:    migrations,
		api.KindNode:         &nodeReconciler{core: co, epoch: epoch, reporter: a.reporter, sweeper: a.sweeper},
	}
	a.loop = reconcile.New(reconcile.Options{Reconcile: a.reconcile, OnError: func(key string, err error) {
		a.log.Warn("step failed, will try again", "key", key, "error", err)
	}})
	co.kick, co.changed = a.loop.Kick, a.watcher.heard
	return a
}

// SetPool takes a pool in that can be used from now on, instead of one of that
// name; nil: it cannot any more.
func (a *Agent) SetPool(name string, d sds.Driver) { a.pools.set(name, d) }

// SetAccelerator changes how machines run that are started from now on, and what
// the node's status says of it.
func (a *Agent) SetAccelerator(x hypervisor.Accelerator) { a.accelerator.set(x) }

// NoAccelerator records that no machine starts here now, and why. What runs goes on.
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

// Leaks is what lies on the node and belongs to nobody (orphanSweeper.leaks).
func (a *Agent) Leaks(ctx context.Context, node api.NodeID) ([]api.Leak, error) {
	return a.sweeper.leaks(ctx, node)
}

// HandlePrepareMigration makes this node ready for a machine from another.
func (a *Agent) HandlePrepareMigration(ctx context.Context, from api.NodeID, r PrepareRequest) (PrepareReply, error) {
	return a.incoming.prepare(ctx, from, r)
}

// HandleTunnel is this node's end of one stream; it closes conn.
func (a *Agent) HandleTunnel(ctx context.Context, from api.NodeID, r TunnelRequest, conn net.Conn) error {
	return a.incoming.acceptTunnel(ctx, from, r, conn)
}

// HandleFinish ends a migration here: the machine runs if all of it has
// arrived, or is thrown away.
func (a *Agent) HandleFinish(ctx context.Context, from api.NodeID, r FinishRequest) (FinishReply, error) {
	return a.incoming.finish(ctx, from, r)
}

// Run until ctx ends. Instances and their vGPUs run on.
func (a *Agent) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, f := range []func(context.Context){a.watcher.watch, a.watcher.machineEvents, a.watcher.backendExits, a.reporter.run, a.sweeper.run, a.meter.run, a.sampler.run, a.hardware.run, a.loop.Run} {
		wg.Add(1)
		go func() { defer wg.Done(); f(ctx) }()
	}
	wg.Wait()
	a.jobs.wait()
	for _, c := range []*copies{a.backups.copies, a.volumes.restores, a.targets.copies} {
		c.wait()
	}
	return ctx.Err()
}

// syncLook is how often a key waits for the first snapshot; staleLook is when
// one is decided on again whose news were old.
const (
	syncLook  = 100 * time.Millisecond
	staleLook = 20 * time.Millisecond
	laterLook = time.Second
)

// reconcile one key: what Loop and Stepper call.
func (a *Agent) reconcile(ctx context.Context, k string) (time.Duration, error) {
	if !a.cache.isSynced() {
		return syncLook, nil
	}
	kind, id := splitKey(k)
	r, ok := a.kinds[kind]
	if !ok {
		return 0, nil
	}
	again, err := r.reconcile(ctx, id)
	switch {
	case errors.Is(err, errStale):
		return staleLook, nil
	case errors.Is(err, errLater):
		return laterLook, nil
	}
	return again, err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
