package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// usageFile is what is on the node's disk about a resource's metering: up to
// when its use has been recorded, and the records of that which may not have
// been committed yet. Package meter says why this loses and doubles nothing.
type usageFile struct {
	State   meter.State   `json:"state"`
	Pending []api.Command `json:"pending,omitempty"`
}

// meters records the use of everything on this node periodically. What begins
// and ends is recorded when it does.
func (a *Agent) meters(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, a.o.MeterEvery)
		if ctx.Err() != nil {
			return
		}
		if err := a.meterAll(ctx); err != nil {
			a.log.Warn("meter", "error", err)
		}
	}
}

func (a *Agent) meterAll(ctx context.Context) error {
	if !a.cache.isSynced() {
		return nil
	}
	var errs []error
	begun := a.o.Now().UTC()
	for _, in := range all(a.cache, a.cache.instances) {
		if in.Meta.DeletedAt == nil { // else its own steps record the last of it
			errs = append(errs, a.meterInstance(ctx, in))
		}
	}
	for _, v := range all(a.cache, a.cache.volumes) {
		if v.Meta.DeletedAt == nil {
			errs = append(errs, a.meterVolume(ctx, v))
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		a.mu.Lock()
		a.metered = begun
		a.mu.Unlock()
	}
	return err
}

// meteredUntil is when all use was last looked at and recorded: by this process,
// by the one before, or never; then from its first report on it is waited for.
func (a *Agent) meteredUntil(now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.metered.IsZero() {
		a.metered = now
		if self, ok := a.cache.self(); ok && !self.Status.MeteredAt.IsZero() {
			a.metered = self.Status.MeteredAt
		}
	}
	return a.metered
}

// sawRun notes that the instance was seen to run. Its use is counted up to
// such a moment: whoever looks late, because the agent was stopped or the store
// away, must not charge for what did not run any more.
func (a *Agent) sawRun(id api.InstanceID, s hypervisor.State) {
	if s != hypervisor.Running && s != hypervisor.Paused {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ran[string(id)] = a.o.Now().UTC()
}

// ranUntil is when the instance was last seen to run here; zero: not by this
// process.
func (a *Agent) ranUntil(id api.InstanceID) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ran[string(id)]
}

// meterInstance records what an instance has used here since last time. Its
// run is the one that its status says, under this assignment: what it used on
// another node is counted there.
func (a *Agent) meterInstance(ctx context.Context, in api.Instance) error {
	r, err := a.files.readRun(api.InstanceID(in.Meta.ID))
	if err != nil {
		return err
	}
	o := meter.Observation{At: a.ranUntil(api.InstanceID(in.Meta.ID)), Rates: meter.Rates{
		api.MeterVCPU:   uint64(in.Assignment.Vcpus),
		api.MeterMemory: uint64(in.Assignment.MemoryBytes),
	}}
	if st := in.Status; st.StartedAt != nil && st.Epoch == in.Assignment.Epoch && !r.Over && (r.Incoming == "" || !r.Since.IsZero()) {
		o.Since = *st.StartedAt
		if r.Epoch == in.Assignment.Epoch && r.Since.After(o.Since) {
			o.Since = r.Since
		}
		o.Run = fmt.Sprintf("%s/%d/%s", a.o.NodeID, in.Assignment.Epoch, st.StartedAt.UTC().Format(time.RFC3339Nano))
	}
	if o.Run != "" && o.At.IsZero() {
		return nil // it is looked at soon
	}
	if o.Totals, err = a.totals(ctx, api.InstanceID(in.Meta.ID)); err != nil {
		return err // its use is recorded once gpud answers
	}
	return a.observe(ctx, a.resource(in.Meta), in.Assignment.Epoch, o)
}

// totals of the instance's vGPU; nil: it has none here.
func (a *Agent) totals(ctx context.Context, id api.InstanceID) (*meter.Totals, error) {
	if a.o.VGPUs == nil || !exists(a.files.vgpuMark(id)) {
		return nil, nil
	}
	t, err := a.o.VGPUs.Totals(ctx, id)
	if err != nil {
		return nil, err
	}
	return &meter.Totals{GPUNanos: t.GPUNanos, PremiumNanos: t.PremiumNanos, BasicNanos: t.BasicNanos, VRAMByteSeconds: t.VRAMByteSeconds, CopyBytes: t.CopyBytes, Launches: t.Launches}, nil
}

// meterVolume records the storage that a volume has taken. A volume costs its
// size from when it is ready until it is deleted.
func (a *Agent) meterVolume(ctx context.Context, v api.Volume) error {
	o := meter.Observation{Rates: meter.Rates{api.MeterVolume: uint64(max(v.Status.SizeBytes, 0))}}
	if v.Status.Phase == api.VolumeReady {
		o.Run = v.Meta.ID
	}
	return a.observe(ctx, a.resource(v.Meta), v.Assignment.Epoch, o)
}

func (a *Agent) resource(m api.Meta) meter.Resource {
	return meter.Resource{ID: m.ID, Name: m.Name, Organization: m.Organization, Project: m.Project, Node: a.o.NodeID}
}

// epochBits leave room for this many observations in an epoch.
const epochBits = 32

// observe advances a resource's metering: first to the disk, then to the store.
// The observations of each epoch have numbers of their own, so that the records
// of two nodes never have the same id.
func (a *Agent) observe(ctx context.Context, r meter.Resource, epoch int64, o meter.Observation) error {
	a.usageMu.Lock()
	defer a.usageMu.Unlock()
	if a.ended[r.ID] {
		return nil // the caller's news are old
	}
	f, err := readUsage(a.usagePath(r.ID))
	if err != nil {
		return err
	}
	if closed, ok := a.closed[r.ID]; ok && epoch <= closed {
		return nil // … and another node's by now
	}
	f.State.Seq = max(f.State.Seq, uint64(max(epoch, 0))<<epochBits)
	if o.At.IsZero() {
		o.At = a.o.Now()
	}
	return a.advance(ctx, r, f, o)
}

// advance with the lock held. What cannot be recorded now is kept, so that
// what is seen while the store is away is not forgotten.
func (a *Agent) advance(ctx context.Context, r meter.Resource, f usageFile, o meter.Observation) error {
	failed := a.record(ctx, f.Pending) // of before a crash, or a failure
	if failed != nil && len(f.Pending) > maxPending {
		return failed
	}
	if failed == nil {
		f.Pending = nil
	}
	o.Watched = a.watched[r.ID]
	if f.State.Run != "" && o.Run != "" && f.State.Run != o.Run { // nobody saw the one end
		f.State.Run = ""
	}
	path := a.usagePath(r.ID)
	next, records := meter.Advance(r, f.State, o)
	f = usageFile{State: next, Pending: append(f.Pending, records...)}
	if err := a.writeUsage(path, f); err != nil {
		return err
	}
	a.watched[r.ID] = true
	if failed != nil || len(f.Pending) == 0 {
		return failed
	}
	if err := a.record(ctx, f.Pending); err != nil {
		return err
	}
	return a.writeUsage(path, usageFile{State: next})
}

// closeUsage ends the metering here of what is another node's now: what was
// counted is recorded, and with last what was used until last.At (zero: until
// the last observation, because nobody saw the end).
func (a *Agent) closeUsage(ctx context.Context, r meter.Resource, last *meter.Observation) error {
	a.usageMu.Lock()
	defer a.usageMu.Unlock()
	f, err := readUsage(a.usagePath(r.ID))
	if err != nil {
		return err
	}
	if err := a.record(ctx, f.Pending); err != nil {
		return err
	}
	f.Pending = nil
	if last != nil {
		if last.At.IsZero() {
			last.At = f.State.At
			a.watched[r.ID] = false
		}
		if now := a.o.Now(); last.At.After(now) {
			last.At = now
		}
		if err := a.advance(ctx, r, f, *last); err != nil {
			return err
		}
	}
	delete(a.watched, r.ID)
	if len(a.closed) >= maxRemoved {
		clear(a.closed)
	}
	a.closed[r.ID] = max(a.closed[r.ID], int64(f.State.Seq>>epochBits))
	return remove(a.usagePath(r.ID))
}

func (a *Agent) isWatched(id string) bool {
	a.usageMu.Lock()
	defer a.usageMu.Unlock()
	return a.watched[id]
}

// maxPending records are kept of a resource while the store is away; then its
// use is observed again only when it is back.
const maxPending = 1024

// maxRecords in one batch keeps log entries small.
const maxRecords = 256

func (a *Agent) record(ctx context.Context, cmds []api.Command) error {
	for len(cmds) > 0 {
		n := min(len(cmds), maxRecords)
		if _, err := a.o.Store.Apply(ctx, api.Batch{At: a.o.Now().UTC(), Commands: cmds[:n]}); err != nil {
			return err
		}
		cmds = cmds[n:]
	}
	return nil
}

// endMetering forgets a resource whose last use has been recorded.
func (a *Agent) endMetering(id string) error {
	a.usageMu.Lock()
	defer a.usageMu.Unlock()
	delete(a.watched, id)
	if len(a.ended) >= maxRemoved {
		clear(a.ended)
	}
	a.ended[id] = true
	return remove(a.usagePath(id))
}

func (a *Agent) usagePath(id string) string { return filepath.Join(a.o.DataDir, "usage", id+".json") }

func readUsage(path string) (usageFile, error) {
	var f usageFile
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(raw, &f)
}

func (a *Agent) writeUsage(path string, f usageFile) error {
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return a.o.writeFile(path, raw)
}
