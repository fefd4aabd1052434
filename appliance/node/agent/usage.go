package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// usageFile is the state of a resource's metering on the node's disk: up to when
// its usage has been recorded, and the records of that which may not have been
// committed yet. Package meter explains why nothing is lost or recorded twice.
type usageFile struct {
	State   meter.State   `json:"state"`
	Pending []api.Command `json:"pending,omitempty"`
}

// usageMeter records the usage of instances and volumes on this node. The store is
// never called with mu held. recordMu is held while a resource's records are
// written, and is locked before mu.
type usageMeter struct {
	*core
	vgpus *vgpuSlices

	mu      sync.Mutex
	ran     map[string]time.Time // instance → when it was last seen running here
	metered time.Time            // start of the last round that recorded everything

	recordMu sync.Mutex
	watched  map[string]bool  // resources metered since this process started
	ended    map[string]bool  // resources whose metering has ended
	closed   map[string]int64 // resource → epoch up to which its metering has ended on this node
}

func newUsageMeter(co *core, vgpus *vgpuSlices) *usageMeter {
	return &usageMeter{core: co, vgpus: vgpus, ran: map[string]time.Time{},
		watched: map[string]bool{}, ended: map[string]bool{}, closed: map[string]int64{}}
}

// run records the usage of everything on this node periodically. What begins and
// ends is recorded when it does.
func (u *usageMeter) run(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, u.o.MeterEvery)
		if ctx.Err() != nil {
			return
		}
		if err := u.recordAll(ctx); err != nil {
			u.log.Warn("record usage failed, will try again", "error", err)
		}
	}
}

func (u *usageMeter) recordAll(ctx context.Context) error {
	if !u.cache.isSynced() {
		return nil
	}
	var errs []error
	begun := u.o.Now().UTC()
	for _, in := range all(u.cache, u.cache.instances) {
		if in.Meta.DeletedAt == nil { // otherwise its own steps record the last usage
			errs = append(errs, u.recordInstance(ctx, in))
		}
	}
	for _, v := range all(u.cache, u.cache.volumes) {
		if v.Meta.DeletedAt == nil {
			errs = append(errs, u.recordVolume(ctx, v))
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		u.mu.Lock()
		u.metered = begun
		u.mu.Unlock()
	}
	return err
}

// meteredUntil returns when all usage was last observed and recorded: by this
// process, or by the previous one, or, if never, the time of this process's first
// report.
func (u *usageMeter) meteredUntil(now time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.metered.IsZero() {
		u.metered = now
		if self, ok := u.cache.self(); ok && !self.Status.MeteredAt.IsZero() {
			u.metered = self.Status.MeteredAt
		}
	}
	return u.metered
}

// sawRun records that the instance was seen running. Its usage is counted up to
// such a moment: when it is recorded late, because the agent was stopped or the
// store unreachable, the time when it did not run any more must not be charged.
func (u *usageMeter) sawRun(id api.InstanceID, s hypervisor.State) {
	if s != hypervisor.Running && s != hypervisor.Paused {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ran[string(id)] = u.o.Now().UTC()
}

// forgetRun drops the time when the instance was last seen running here.
func (u *usageMeter) forgetRun(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.ran, id)
}

// ranUntil returns when this process last saw the instance running, or zero if it
// did not.
func (u *usageMeter) ranUntil(id api.InstanceID) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ran[string(id)]
}

// recordInstance records an instance's usage on this node since the last record.
// The run is the one in its status, under this assignment: usage on another node is
// recorded there.
func (u *usageMeter) recordInstance(ctx context.Context, in api.Instance) error {
	r, err := u.files.readRun(api.InstanceID(in.Meta.ID))
	if err != nil {
		return err
	}
	o := meter.Observation{At: u.ranUntil(api.InstanceID(in.Meta.ID)), Rates: meter.Rates{
		api.MeterVCPU:   uint64(in.Assignment.Vcpus),
		api.MeterMemory: uint64(in.Assignment.MemoryBytes),
	}, Attributes: u.attributes(in)}
	if share := in.Assignment.VgpuSharePercent; share > 0 {
		o.Rates[api.MeterGPUShare] = uint64(share)
	}
	if st := in.Status; st.StartedAt != nil && st.Epoch == in.Assignment.Epoch && !r.Over && (r.Incoming == "" || !r.Since.IsZero()) {
		o.Since = *st.StartedAt
		if r.Epoch == in.Assignment.Epoch && r.Since.After(o.Since) {
			o.Since = r.Since
		}
		o.Run = fmt.Sprintf("%s/%d/%s", u.o.NodeID, in.Assignment.Epoch, st.StartedAt.UTC().Format(time.RFC3339Nano))
	}
	if o.Run != "" && o.At.IsZero() {
		return nil // it will be observed soon
	}
	if o.Totals, err = u.vgpus.totals(ctx, api.InstanceID(in.Meta.ID)); err != nil {
		return err // its use is recorded once gpud answers
	}
	return u.observe(ctx, u.resource(in.Meta), in.Assignment.Epoch, o)
}

// attributes returns the attributes of an instance by which prices may differ. The
// model of a GPU that is not known any more is left out.
func (u *usageMeter) attributes(in api.Instance) api.PriceSelector {
	a := api.PriceSelector{Flavor: string(in.Spec.Flavor)}
	if in.Assignment.Gpu == "" || in.Spec.Vgpu == nil {
		return a
	}
	a.Pool = cmp.Or(in.Spec.Vgpu.Pool, api.DefaultPool)
	a.Tier = string(cmp.Or(in.Assignment.VgpuTier, api.TierStandard))
	if card, ok := get(u.cache, u.cache.gpus, string(in.Assignment.Gpu)); ok {
		a.Model = card.Status.Model
	}
	return a
}

// recordVolume records the storage that a volume has used. A volume is charged for
// its size from when it is ready until it is deleted.
func (u *usageMeter) recordVolume(ctx context.Context, v api.Volume) error {
	o := meter.Observation{Rates: meter.Rates{api.MeterVolume: uint64(max(v.Status.SizeBytes, 0))},
		Attributes: api.PriceSelector{StorageClass: v.Assignment.Pool}}
	if v.Status.Phase == api.VolumeReady {
		o.Run = v.Meta.ID
	}
	return u.observe(ctx, u.resource(v.Meta), v.Assignment.Epoch, o)
}

func (u *usageMeter) resource(m api.Meta) meter.Resource {
	return meter.Resource{ID: m.ID, Name: m.Name, Organization: m.Organization, Project: m.Project, Node: u.o.NodeID}
}

// epochBits is the number of bits for observations within an epoch.
const epochBits = 32

// observe advances a resource's metering: first on the disk, then in the store. The
// observations of each epoch have their own range of numbers, so that records of
// two nodes never have the same ID.
func (u *usageMeter) observe(ctx context.Context, r meter.Resource, epoch int64, o meter.Observation) error {
	u.recordMu.Lock()
	defer u.recordMu.Unlock()
	if u.ended[r.ID] {
		return nil // the caller's object is outdated
	}
	f, err := readUsage(u.path(r.ID))
	if err != nil {
		return err
	}
	if closed, ok := u.closed[r.ID]; ok && epoch <= closed {
		return nil // the resource is another node's by now
	}
	f.State.Seq = max(f.State.Seq, uint64(max(epoch, 0))<<epochBits)
	if o.At.IsZero() {
		o.At = u.o.Now()
	}
	return u.advance(ctx, r, f, o)
}

// advance advances the metering with recordMu held. What cannot be recorded now is
// kept on the disk, so that what is observed while the store is unreachable is not
// lost.
func (u *usageMeter) advance(ctx context.Context, r meter.Resource, f usageFile, o meter.Observation) error {
	failed := u.record(ctx, r.ID, f.Pending) // left by a crash or a failure
	if failed != nil && len(f.Pending) > maxPending {
		return failed
	}
	if failed == nil {
		f.Pending = nil
	}
	o.Watched = u.watched[r.ID]
	if f.State.Run != "" && o.Run != "" && f.State.Run != o.Run { // the end of the old run was not observed
		f.State.Run = ""
	}
	path := u.path(r.ID)
	next, records := meter.Advance(r, f.State, o)
	f = usageFile{State: next, Pending: append(f.Pending, records...)}
	if err := u.write(path, f); err != nil {
		return err
	}
	u.watched[r.ID] = true
	if failed != nil || len(f.Pending) == 0 {
		return failed
	}
	if err := u.record(ctx, r.ID, f.Pending); err != nil {
		return err
	}
	return u.write(path, usageFile{State: next})
}

// close ends the metering on this node of a resource that is another node's now: it
// records what was counted, and at last the usage until last.At (if zero, until the
// last observation, because the end was not observed). If last is nil only what was
// counted is recorded.
func (u *usageMeter) close(ctx context.Context, r meter.Resource, last *meter.Observation) error {
	u.recordMu.Lock()
	defer u.recordMu.Unlock()
	f, err := readUsage(u.path(r.ID))
	if err != nil {
		return err
	}
	if err := u.record(ctx, r.ID, f.Pending); err != nil {
		return err
	}
	f.Pending = nil
	if last != nil {
		if last.At.IsZero() {
			last.At = f.State.At
			u.watched[r.ID] = false
		}
		if now := u.o.Now(); last.At.After(now) {
			last.At = now
		}
		if err := u.advance(ctx, r, f, *last); err != nil {
			return err
		}
	}
	delete(u.watched, r.ID)
	if len(u.closed) >= maxRemoved {
		clear(u.closed)
	}
	u.closed[r.ID] = max(u.closed[r.ID], int64(f.State.Seq>>epochBits))
	return remove(u.path(r.ID))
}

func (u *usageMeter) isWatched(id string) bool {
	u.recordMu.Lock()
	defer u.recordMu.Unlock()
	return u.watched[id]
}

// maxPending is the number of records of a resource that are kept while the store
// is unreachable; beyond it the resource is observed again only when the store is
// reachable.
const maxPending = 1024

// maxRecords is the number of records in one batch, which keeps log entries small.
const maxRecords = 256

// record writes usage records of the resource to the store.
func (u *usageMeter) record(ctx context.Context, resource string, cmds []api.Command) error {
	for len(cmds) > 0 {
		n := min(len(cmds), maxRecords)
		if _, err := u.o.Store.Apply(ctx, api.Batch{At: u.o.Now().UTC(), Commands: cmds[:n]}); err != nil {
			return fmt.Errorf("record the usage of %s: %w", resource, err)
		}
		cmds = cmds[n:]
	}
	return nil
}

// end drops the metering of a resource whose last usage has been recorded.
func (u *usageMeter) end(id string) error {
	u.recordMu.Lock()
	defer u.recordMu.Unlock()
	delete(u.watched, id)
	if len(u.ended) >= maxRemoved {
		clear(u.ended)
	}
	u.ended[id] = true
	return remove(u.path(id))
}

func (u *usageMeter) path(id string) string { return filepath.Join(u.o.DataDir, "usage", id+".json") }

func readUsage(path string) (usageFile, error) {
	var f usageFile
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("decode file of usage: %w", err)
	}
	return f, nil
}

func (u *usageMeter) write(path string, f usageFile) error {
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return u.o.writeFile(path, raw)
}

// leave records the last usage on this node of a resource that now belongs to
// another node: until it was assigned to that node, if this process saw the
// assignment, otherwise until the last observation.
func (u *usageMeter) leave(ctx context.Context, kind api.Kind, id string, o *api.Object) error {
	if !exists(u.path(id)) {
		return nil
	}
	last := meter.Observation{At: u.cache.leftAt(key(kind, id))}
	if o == nil { // no project to charge: only what was counted before is recorded
		return u.close(ctx, meter.Resource{ID: id}, nil)
	}
	if kind == api.KindInstance {
		if ran := u.ranUntil(api.InstanceID(id)); ran.IsZero() || ran.Before(last.At) {
			last.At = ran
		}
		totals, err := u.vgpus.totals(ctx, api.InstanceID(id))
		if err != nil {
			return err
		}
		last.Totals = totals
	}
	return u.close(ctx, u.resource(o.Meta), &last)
}
