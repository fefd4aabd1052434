package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// reconcileInstance looks at one instance, takes one step, and says what is so.
// It is called again at once while there are steps to take.
func (a *Agent) reconcileInstance(ctx context.Context, id string) (time.Duration, error) {
	in, ok := get(a.cache, a.cache.instances, id)
	if !ok {
		if m, comes := a.cache.migrationOf(api.InstanceID(id)); comes && m.Assignment.Target == a.o.NodeID {
			if again, err := a.noteArrival(ctx, m); again > 0 || err != nil {
				return again, err
			}
		}
		if err := a.leaveInstance(ctx, api.InstanceID(id)); err != nil { // another node's, or gone
			return 0, err
		}
		a.forgetRun(id)
		return 0, nil
	}
	if m, ok := a.moving(api.InstanceID(id)); ok {
		return a.whileMoving(ctx, in, m)
	}
	if err := a.fence.keep(false); err != nil {
		return 0, fmt.Errorf("telling the fence what to keep: %w", err)
	}
	s, err := a.look(ctx, in)
	if err != nil {
		return 0, err
	}
	d := next(in, s, a.o.Now(), a.o.StopGrace)
	idle := d.step == stepNone || d.step == stepWait
	of := api.Tried(in.Meta, in.Assignment)
	if !idle && in.Status.Retry.Stands(of) { // the reason stays until it works
		d.status.LastError, d.status.Retry = in.Status.LastError, in.Status.Retry
	}
	if err := a.say(ctx, in, d.status); err != nil {
		return 0, err
	}
	if idle {
		return d.again, nil
	}
	if wait, held := a.hold(in.Status.Retry, of, retryHere); held && d.step.begins() {
		return wait, nil
	}
	a.log.Info("instance", "id", id, "name", in.Meta.Name, "step", string(d.step))
	if err := a.do(ctx, in, d.step); err != nil {
		if errors.Is(err, errStale) {
			return 0, err
		}
		st := d.status
		st.Retry = in.Status.Retry.After(id, of, a.o.Now(), retryHere)
		if !reflect.DeepEqual(st.Retry, in.Status.Retry) { // what goes on failing is told as often as it is tried
			st.LastError = err.Error()
		}
		if said := a.say(ctx, in, st); said != nil {
			a.log.Warn("report", "id", id, "error", said)
		}
		return 0, fmt.Errorf("%s: %w", d.step, err)
	}
	if d.step == stepForget {
		return 0, nil
	}
	return max(d.again, time.Millisecond), nil
}

// say reports a changed status, if the instance is still assigned as it was
// when that was decided.
func (a *Agent) say(ctx context.Context, in api.Instance, st api.InstanceStatus) error {
	now, ok := get(a.cache, a.cache.instances, in.Meta.ID)
	if !ok || now.Assignment.Epoch != in.Assignment.Epoch {
		return errStale
	}
	if reflect.DeepEqual(in.Status, st) || reflect.DeepEqual(now.Status, st) {
		return nil
	}
	if err := a.report(ctx, api.KindInstance, in.Meta.ID, now.Meta.Revision, st); err != nil {
		return err
	}
	if (in.Status.StartedAt == nil) != (st.StartedAt == nil) || in.Status.Epoch != st.Epoch { // a run has begun, or is over
		in.Status = st
		return a.meter.recordInstance(ctx, in)
	}
	return nil
}

// forgetRun drops what this process remembers of an instance.
func (a *Agent) forgetRun(id string) {
	a.meter.forgetRun(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.claimed, id)
	delete(a.stopping, id)
	delete(a.arrived, id)
}

// stopping is when the power button of an instance was pressed.
type stopping struct{ first, last time.Time }

// look finds out what there is on the node.
func (a *Agent) look(ctx context.Context, in api.Instance) (seen, error) {
	id := api.InstanceID(in.Meta.ID)
	status, err := a.o.Machines.Status(ctx, id)
	if err != nil {
		return seen{}, err
	}
	s := seen{domain: status.State, reason: status.Reason, node: a.o.NodeID, boot: a.o.BootID, blocked: a.fence.blocked(in)}
	r, err := a.files.readRun(id)
	if err != nil {
		return seen{}, err
	}
	s.epoch = r.Epoch
	if s.epoch == in.Assignment.Epoch {
		a.meter.sawRun(id, s.domain)
	}
	if !s.domain.Active() && in.Status.StartedAt != nil && r.Epoch == in.Assignment.Epoch {
		if s.interrupted, err = a.fence.interrupted(in, r, s.domain); err != nil {
			return seen{}, err
		}
	}
	if v, ok := get(a.cache, a.cache.volumes, string(in.Assignment.RootVolume)); ok {
		s.volume = v.Status.Phase == api.VolumeReady && (s.domain.Active() || a.pools.hasVolume(ctx, v) && !needsRollback(v))
		s.noVolume = v.Status.LastError
	}
	if _, err := os.Stat(a.files.seedPath(id)); err == nil {
		s.media = true
	}
	ports, err := a.ports.plugged(ctx, id)
	if err != nil && !s.domain.Active() && len(in.Assignment.Ports) > 0 {
		return seen{}, err // what runs goes on
	}
	s.ports = len(ports) > 0
	if a.o.VGPUs != nil {
		s.vgpu = a.o.VGPUs.Alive(id)
		s.slice = s.vgpu || exists(a.files.vgpuMark(id))
	}
	a.mu.Lock()
	claimed, ok := a.claimed[in.Meta.ID]
	s.unclaimed = !ok || claimed != in.Assignment.Epoch
	s.stopping, s.pressed = a.stopping[in.Meta.ID].first, a.stopping[in.Meta.ID].last
	if !s.domain.Active() {
		delete(a.stopping, in.Meta.ID)
		s.stopping, s.pressed = time.Time{}, time.Time{}
	}
	a.mu.Unlock()
	if s.domain == hypervisor.Running {
		a.disks.freezer.thawLeft(ctx, id)
		s.tools = a.toolsVersion(ctx, id, in.Status.GuestTools)
		if s.tools != "" && setupOpen(in.Status, a.o.Now()) {
			s.setup = a.guestSetup(ctx, id)
		}
	}
	return s, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (a *Agent) do(ctx context.Context, in api.Instance, s step) error {
	id := api.InstanceID(in.Meta.ID)
	switch s {
	case stepMedia:
		return a.files.writeSeed(in)
	case stepVGPU:
		_, err := a.vgpus.ensure(ctx, in)
		return err
	case stepStart:
		return a.begin(ctx, in)
	case stepResume:
		if err := a.fence.confirm(ctx, in); err != nil {
			return err
		}
		return a.o.Machines.Resume(ctx, id)
	case stepClaim:
		return a.adopt(ctx, in)
	case stepAbortMove:
		return a.o.Migrator.AbortMigration(ctx, id)
	case stepEndMove:
		return a.endMove(ctx, id)
	case stepShutdown:
		if err := a.files.endRun(id); err != nil {
			return err
		}
		if err := a.o.Machines.Shutdown(ctx, id); err != nil {
			return err
		}
		a.mu.Lock()
		now := a.o.Now()
		p, again := a.stopping[in.Meta.ID]
		if !again {
			p.first = now
		}
		p.last = now
		a.stopping[in.Meta.ID] = p
		a.mu.Unlock()
		return nil
	case stepDestroy:
		s, err := a.o.Machines.Status(ctx, id)
		if err == nil {
			err = a.files.endRun(id)
		}
		if err != nil {
			return err
		}
		return a.destroy(ctx, id, s.State)
	case stepUndefine:
		if err := a.meter.recordInstance(ctx, in); err != nil {
			return err
		}
		return a.o.Machines.Undefine(ctx, id)
	case stepStopVGPU:
		return a.o.VGPUs.Stop(ctx, id)
	case stepDropVGPU:
		if err := a.meter.recordInstance(ctx, in); err != nil { // what it used must be known before its totals go
			return err
		}
		if err := a.o.VGPUs.Remove(ctx, id); err != nil {
			return err
		}
		return remove(a.files.vgpuMark(id))
	case stepUnplug:
		return a.ports.unplug(ctx, id)
	case stepDropFiles:
		return a.files.drop(id)
	case stepForget:
		if err := a.meter.end(in.Meta.ID); err != nil {
			return err
		}
		return a.forget(ctx, api.KindInstance, in.Meta.ID)
	}
	return fmt.Errorf("unknown step %q", s)
}

// begin a run. What could run elsewhere is this node's only as long as the
// cluster says so: the claim comes first, then the store's word, then the
// lease, and then nothing that takes long.
func (a *Agent) begin(ctx context.Context, in api.Instance) error {
	if err := a.accelerator.ready(); err != nil {
		return err
	}
	id := api.InstanceID(in.Meta.ID)
	release, err := a.disks.acquire(id) // and so the list of its volumes
	if err != nil {
		return err
	}
	defer release()
	// The run before this one is over, also where this process does not know that
	// it has said so: an answer may have been lost. From here on the machine is
	// seen to run again.
	over := in
	over.Status.StartedAt = nil
	if err := a.meter.recordInstance(ctx, over); err != nil {
		return err
	}
	if err := a.claim(ctx, in); err != nil {
		return err
	}
	attached := a.disks.attachedTo(in)
	for _, v := range attached {
		if err := a.disks.claimVolume(ctx, v); err != nil {
			return err
		}
	}
	d, disks, err := a.domain(ctx, in, attached)
	if err != nil {
		return err
	}
	if err := a.o.Machines.Define(ctx, d); err != nil {
		return err
	}
	if err := a.files.writeRun(id, runFile{Epoch: in.Assignment.Epoch, Boot: a.o.BootID, Since: a.o.Now().UTC()}); err != nil {
		return err
	}
	if err := a.fence.confirm(ctx, in); err != nil {
		return err
	}
	for _, v := range attached {
		if err := a.disks.confirmVolume(ctx, v); err != nil {
			return err
		}
	}
	// However long QEMU takes to start, or this process to go on: the guest
	// runs only if it still may.
	if err := a.disks.withSecrets(ctx, disks, func() error { return a.o.Machines.Load(ctx, id) }); err != nil {
		return err
	}
	// Claimed again, now that its disks are open and nothing is written: the pool
	// learns whom to shut out when another node takes over.
	err = a.claim(ctx, in)
	for _, v := range attached {
		err = errors.Join(err, a.disks.claimVolume(ctx, v))
	}
	if err == nil {
		err = a.fence.confirm(ctx, in)
	}
	if err != nil {
		return errors.Join(err, a.o.Machines.Destroy(context.WithoutCancel(ctx), id))
	}
	return a.o.Machines.Resume(ctx, id) // which starts nothing if the fence was faster
}

// claim the root volume for this assignment.
func (a *Agent) claim(ctx context.Context, in api.Instance) error {
	v, ok := get(a.cache, a.cache.volumes, string(in.Assignment.RootVolume))
	if !ok {
		return errStale
	}
	p, err := a.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	if err := p.ClaimVolume(ctx, in.Assignment.RootVolume, sds.Owner{Node: a.o.NodeID, Epoch: in.Assignment.Epoch}); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claimed[in.Meta.ID] = in.Assignment.Epoch
	return nil
}

// adopt a domain that runs already: by a migration, or since before this
// process.
func (a *Agent) adopt(ctx context.Context, in api.Instance) error {
	id := api.InstanceID(in.Meta.ID)
	r, err := a.files.readRun(id)
	if err != nil {
		return err
	}
	if r.Incoming != "" {
		a.disks.forgetKeys(ctx, r.Opens)
		r.Incoming, r.Volume, r.Left, r.Opens = "", "", false, nil
		if r.Since.IsZero() {
			r.Since = a.o.Now().UTC()
		}
		if err := a.files.writeRun(id, r); err != nil {
			return err
		}
	}
	if err := a.claim(ctx, in); err != nil {
		return err
	}
	for _, v := range a.disks.attachedTo(in) {
		if err := a.disks.claimVolume(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// endMove lets a machine run that has come here as a whole, and throws away
// what has not.
func (a *Agent) endMove(ctx context.Context, id api.InstanceID) error {
	err := a.o.Migrator.FinishMigration(ctx, id)
	if c := api.CodeOf(err); c != api.CodeState && c != api.CodeNotFound {
		return err
	}
	return a.o.Migrator.DiscardMigration(ctx, id)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// domain is the machine that the instance's assignment asks for, with its root
// volume and those that are attached to it.
func (a *Agent) domain(ctx context.Context, in api.Instance, attached []api.Volume) (hypervisor.Domain, []disk, error) {
	v, ok := get(a.cache, a.cache.volumes, string(in.Assignment.RootVolume))
	if !ok {
		return hypervisor.Domain{}, nil, errStale
	}
	var disks []disk
	for _, v := range append([]api.Volume{v}, attached...) {
		k, err := a.disks.find(ctx, v)
		if err != nil {
			return hypervisor.Domain{}, nil, err
		}
		disks = append(disks, k)
	}
	nics, err := a.ports.plug(ctx, in, false)
	if err != nil {
		return hypervisor.Domain{}, nil, err
	}
	d, err := a.domainOn(ctx, in, disks, nics)
	return d, disks, err
}

// domainOn is the machine with those disks and cards.
func (a *Agent) domainOn(ctx context.Context, in api.Instance, disks []disk, nics []hypervisor.NIC) (hypervisor.Domain, error) {
	id := api.InstanceID(in.Meta.ID)
	if err := os.MkdirAll(a.files.runDir(id), 0o755); err != nil {
		return hypervisor.Domain{}, err
	}
	d := hypervisor.Domain{
		ID: id, Node: a.o.NodeID, Name: in.Meta.Name,
		VCPUs: int(in.Assignment.Vcpus), MemoryBytes: in.Assignment.MemoryBytes, Accelerator: a.accelerator.how(),
		NICs:         nics,
		CDROMs:       []hypervisor.CDROM{{Path: a.files.seedPath(id), Serial: "seed"}},
		SerialSocket: filepath.Join(a.files.runDir(id), "serial"), SerialLog: filepath.Join(a.files.dir(id), "console.log"),
		VNCSocket: filepath.Join(a.files.runDir(id), "vnc"),
	}
	for _, k := range disks {
		d.Disks = append(d.Disks, k.Disk)
	}
	if a.o.ToolsDisc != "" {
		d.CDROMs = append(d.CDROMs, hypervisor.CDROM{Path: a.o.ToolsDisc, Serial: "tools"})
	}
	if in.Assignment.Gpu != "" {
		var err error
		if d.VGPUSocket, err = a.vgpus.ensure(ctx, in); err != nil {
			return hypervisor.Domain{}, err
		}
	}
	return d, nil
}
