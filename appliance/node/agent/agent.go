// Package agent carries out one node's part of the cluster's intent: it watches the
// store for what is assigned to its node, calls drivers to realize it, and writes
// Status and usage. Only the agent writes Status; it never writes Spec or
// Assignment. It may be killed at any moment: every step is idempotent and is
// decided from what is observed on the node, not from memory.
//
//	watch ─► cache ─trigger─► reconcile(key): observe ─► next (pure) ─► one step ─► report
//	libvirt events ─trigger─┘        ▲─────────────────────────────────────────┘
//
// instance_next.go draws the instance's life cycle, migration_next.go a
// migration's, node.go the return of a lost node. DESIGN.md explains why an
// instance never runs twice.
//
// Each kind has a reconciler, found in one table; each periodic task is a type of
// its own too (usageMeter, sampler, reporter, orphanSweeper). Each owns its state,
// and embeds core for what all of them need.
//
// Locks: every type's mu guards that type's state only. While it is held, no other
// type's mu may be taken except the cache's, and no driver, store or fence may be
// called. Exceptions are fenceKeeper.mu, held while the list of protected instances
// is sent to the fence, and usageMeter.recordMu, held while usage is recorded.
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

// Store is the part of the cluster's state store that the agent uses.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// Changes delivers changes of the cluster's objects to the agent
// (watchcache.Cache).
type Changes interface {
	Follow(ctx context.Context, kinds []objects.Kind, take func(watchcache.Update)) error
}

// reconciler brings the objects of one kind to the wanted state, one step at a
// time. It is called with an object's ID when something about it has changed, and
// again after the duration that it returned; 0 means not before the next change. It
// owns the in-memory state of its kind.
type reconciler interface {
	reconcile(ctx context.Context, id string) (again time.Duration, err error)
}

// Agent runs on one node. It has a reconciler for each kind, and the periodic
// tasks.
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
	migrations  *migrationReconciler

	watcher  *watcher
	meter    *usageMeter
	sampler  *sampler
	reporter *reporter
	hardware *hardwareWatch
	sweeper  *orphanSweeper
}

// New returns an agent; Run starts it.
func New(o Options) *Agent {
	o.setDefaults()
	co := newCore(o)
	a := &Agent{core: co, accelerator: &acceleration{}, sampler: newSampler(co)}
	a.accelerator.set(o.Accelerator)
	epoch := &observedEpoch{cache: co.cache}
	fence := &fenceKeeper{core: co, epoch: epoch}
	vgpus, ports, disks := &vgpuSlices{core: co}, &portSet{core: co}, newDiskSet(co)
	retained := &retention{core: co, path: filepath.Join(o.DataDir, "unknown.json")}
	a.meter = newUsageMeter(co, vgpus)
	a.reporter = &reporter{core: co, epoch: epoch, accelerator: a.accelerator, fence: fence, meter: a.meter, sampler: a.sampler, news: make(chan struct{}, 1)}
	a.hardware = &hardwareWatch{core: co, accelerator: a.accelerator, soon: a.reporter.soon}
	a.reporter.hardware = a.hardware
	a.watcher = &watcher{core: co, fence: fence}

	states := newStateKeeper(co, disks)
	classes := &machineClasses{core: co, accelerator: a.accelerator}
	pins := &cpuPins{core: co, set: map[api.InstanceID]string{}}
	a.images = &imageReconciler{core: co, reporter: a.reporter, running: map[string]bool{}}
	media := &mediaSet{core: co, images: a.images}
	domains := &domainBuilder{core: co, pins: pins, disks: disks, ports: ports, vgpus: vgpus, accelerator: a.accelerator, media: media}
	a.backups = &backupReconciler{core: co, disks: disks, states: states, copies: newCopies(co, maxBackups)}
	a.targets = &backupTargetReconciler{core: co, copies: newCopies(co, maxTargets)}
	a.incoming = &migrationTarget{core: co, epoch: epoch, fence: fence, disks: disks, ports: ports, domains: domains, classes: classes, pins: pins, media: media, arrived: map[string]time.Time{}, attempts: map[string]attempts{}}
	a.incoming.receiver = &receiver{core: co, fence: fence, images: a.images, copies: newCopies(co, maxReceives), target: a.incoming}
	migrations := &migrationReconciler{core: co, fence: fence, disks: disks, meter: a.meter, target: a.incoming, states: states, moves: map[string]*move{}}
	a.migrations, a.incoming.migrations, disks.migrations = migrations, migrations, migrations
	attacher := &volumeAttacher{core: co, fence: fence, disks: disks, states: states, migrations: migrations}
	a.volumes = &volumeReconciler{core: co, fence: fence, disks: disks, meter: a.meter, retention: retained, migrations: migrations,
		images: a.images, backups: a.backups, attacher: attacher, restores: newCopies(co, maxRestores), states: states}
	attacher.volumes = a.volumes
	instances := &instanceReconciler{core: co, reports: &guestReports{core: co, of: map[api.InstanceID]*guestQuery{}}, accelerator: a.accelerator, fence: fence, disks: disks, ports: ports, vgpus: vgpus, meter: a.meter,
		domains: domains, classes: classes, pins: pins, media: media, migrations: migrations, incoming: a.incoming, volumes: a.volumes, states: states, stopping: map[string]stopping{}, claimed: map[string]int64{}}
	a.sweeper = &orphanSweeper{core: co, vgpus: vgpus, ports: ports, retention: retained, instances: instances, volumes: a.volumes, backups: a.backups, media: &mediaSweeper{core: co}}
	a.kinds = map[api.Kind]reconciler{
		api.KindInstance:     instances,
		api.KindVolume:       a.volumes,
		api.KindSnapshot:     &snapshotReconciler{core: co, disks: disks, states: states},
		api.KindBackup:       a.backups,
		api.KindBackupTarget: a.targets,
		api.KindImage:        a.images,
		api.KindMigration:    migrations,
		api.KindNode:         &nodeReconciler{core: co, epoch: epoch, reporter: a.reporter, sweeper: a.sweeper},
	}
	a.loop = reconcile.New(reconcile.Options{Reconcile: a.reconcile, OnError: func(key string, err error) {
		a.log.Warn("step failed, will try again", "key", key, "error", err)
	}})
	co.trigger, co.changed = a.loop.Trigger, a.watcher.enqueue
	return a
}

// SetPool adds the pool that can be used from now on, replacing one of that name; a
// nil driver removes it.
func (a *Agent) SetPool(name string, d sds.Driver) { a.pools.set(name, d) }

// SetAccelerator changes the accelerator of machines started from now on, and with
// it what the node's status reports.
func (a *Agent) SetAccelerator(x hypervisor.Accelerator) { a.accelerator.set(x) }

// NoAccelerator records that no machine can be started on this node now, and why.
// Running machines are not affected.
func (a *Agent) NoAccelerator(why error) { a.accelerator.unset(why) }

// ReportSoon requests a report of the node now instead of at the next interval. It
// does not wait for the report.
func (a *Agent) ReportSoon() { a.reporter.soon() }

// Samples returns the metrics of an instance, of this node or of one of its GPUs.
func (a *Agent) Samples(ctx context.Context, of api.Kind, id string, q api.SampleQuery) (api.Samples, error) {
	return a.sampler.samples(ctx, of, id, q)
}

// GPUTenants returns the vGPUs that one of this node's GPUs has now, the most VRAM
// first.
func (a *Agent) GPUTenants(ctx context.Context, gpu api.GPUID) ([]api.GPUTenant, error) {
	return a.sampler.gpuTenants(ctx, gpu)
}

// ExportImage opens an image for another node to read, whichever pool it is stored
// in. The caller closes the reader.
func (a *Agent) ExportImage(ctx context.Context, id api.ImageID) (io.ReadCloser, sds.Image, error) {
	return a.images.export(ctx, id)
}

// PutImage stores an image's content that a client uploads.
func (a *Agent) PutImage(ctx context.Context, id api.ImageID, content io.Reader) error {
	return a.images.put(ctx, id, content)
}

// Leaks returns what is stored on the node and belongs to no object
// (orphanSweeper.leaks).
func (a *Agent) Leaks(ctx context.Context, node api.NodeID) ([]api.Leak, error) {
	return a.sweeper.leaks(ctx, node)
}

// HandlePrepareMigration prepares this node to receive a machine from another.
func (a *Agent) HandlePrepareMigration(ctx context.Context, from api.NodeID, r PrepareRequest) (PrepareReply, error) {
	return a.incoming.prepare(ctx, from, r)
}

// HandleTunnel serves this node's end of one migration stream. It closes conn.
func (a *Agent) HandleTunnel(ctx context.Context, from api.NodeID, r TunnelRequest, conn net.Conn) error {
	return a.incoming.acceptTunnel(ctx, from, r, conn)
}

// HandleFinish ends a migration on the target: the machine is resumed if all of it
// has arrived, and discarded otherwise.
func (a *Agent) HandleFinish(ctx context.Context, from api.NodeID, r FinishRequest) (FinishReply, error) {
	return a.incoming.finish(ctx, from, r)
}

// HandleCopyProgress tells the source of a stopped instance's migration how far this
// node is with its volumes.
func (a *Agent) HandleCopyProgress(ctx context.Context, from api.NodeID, r CopyRequest) (CopyReply, error) {
	return a.incoming.receiver.progress(ctx, from, r)
}

// ExportVolume writes a volume of a stopped instance for the node that it migrates to.
// begin is called with the volume before anything is written.
func (a *Agent) ExportVolume(ctx context.Context, to api.NodeID, r VolumeRequest, w io.Writer, begin func(sds.Volume)) error {
	return a.migrations.export(ctx, to, r, w, begin)
}

// Run runs the agent until ctx ends and returns its error. Instances and their
// vGPUs keep running.
func (a *Agent) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, f := range []func(context.Context){a.watcher.watch, a.watcher.machineEvents, a.watcher.backendExits, a.reporter.run, a.sweeper.run, a.meter.run, a.sampler.run, a.hardware.run, a.loop.Run} {
		wg.Add(1)
		go func() { defer wg.Done(); f(ctx) }()
	}
	wg.Wait()
	a.jobs.wait()
	for _, c := range []*copies{a.backups.copies, a.volumes.restores, a.targets.copies, a.incoming.receiver.copies} {
		c.wait()
	}
	return ctx.Err()
}

// syncRetry is how often a key polls for the first snapshot of the cache. staleRetry
// is when a key is decided on again whose cached objects were outdated, laterRetry
// when another task held what the key needs.
const (
	syncRetry  = 100 * time.Millisecond
	staleRetry = 20 * time.Millisecond
	laterRetry = time.Second
)

// reconcile handles one key; Loop and Stepper call it.
func (a *Agent) reconcile(ctx context.Context, k string) (time.Duration, error) {
	if !a.cache.isSynced() {
		return syncRetry, nil
	}
	kind, id := splitKey(k)
	r, ok := a.kinds[kind]
	if !ok {
		return 0, nil
	}
	again, err := r.reconcile(ctx, id)
	switch {
	case errors.Is(err, errStale):
		return staleRetry, nil
	case errors.Is(err, errLater):
		return laterRetry, nil
	}
	return again, err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
