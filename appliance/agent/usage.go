package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
)

// usageFile is what is on the node's disk about a resource's metering: up to
// when its use has been recorded, and the records of that which may not have
// been committed yet. Package meter says why this loses and doubles nothing.
type usageFile struct {
	State   meter.State   `json:"state"`
	Pending []api.Command `json:"pending,omitempty"`
}

// meter records the use of everything on this node periodically. What begins
// and ends is recorded when it does.
func (a *Agent) meter(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, a.o.MeterEvery)
		if ctx.Err() != nil || !a.cache.isSynced() {
			continue
		}
		for _, in := range all(a.cache, a.cache.instances) {
			if in.Meta.DeletedAt != nil {
				continue // its own steps record the last of it
			}
			if err := a.meterInstance(ctx, in); err != nil {
				a.log.Warn("meter", "instance", in.Meta.ID, "error", err)
			}
		}
		for _, v := range all(a.cache, a.cache.volumes) {
			if v.Meta.DeletedAt != nil {
				continue
			}
			if err := a.meterVolume(ctx, v); err != nil {
				a.log.Warn("meter", "volume", v.Meta.ID, "error", err)
			}
		}
	}
}

// meterInstance records what an instance has used since last time. Its run is
// the one that its status says.
func (a *Agent) meterInstance(ctx context.Context, in api.Instance) error {
	o := meter.Observation{Rates: meter.Rates{
		api.MeterVCPU:   uint64(in.Assignment.Vcpus),
		api.MeterMemory: uint64(in.Assignment.MemoryBytes),
	}}
	if in.Status.StartedAt != nil {
		o.Since = *in.Status.StartedAt
		o.Run = o.Since.UTC().Format(time.RFC3339Nano)
	}
	if a.o.VGPUs != nil && exists(a.vgpuMark(api.InstanceID(in.Meta.ID))) {
		t, err := a.o.VGPUs.Totals(ctx, api.InstanceID(in.Meta.ID))
		if err != nil {
			return err // its use is recorded once gpud answers
		}
		o.Totals = &meter.Totals{GPUNanos: t.GPUNanos, VRAMByteSeconds: t.VRAMByteSeconds, CopyBytes: t.CopyBytes, Launches: t.Launches}
	}
	return a.observe(ctx, a.resource(in.Meta), o)
}

// meterVolume records the storage that a volume has taken. A volume costs its
// size from when it is ready until it is deleted.
func (a *Agent) meterVolume(ctx context.Context, v api.Volume) error {
	o := meter.Observation{Rates: meter.Rates{api.MeterVolume: uint64(max(v.Status.SizeBytes, 0))}}
	if v.Status.Phase == api.VolumeReady {
		o.Run = v.Meta.ID
	}
	return a.observe(ctx, a.resource(v.Meta), o)
}

func (a *Agent) resource(m api.Meta) meter.Resource {
	return meter.Resource{ID: m.ID, Name: m.Name, Organization: m.Organization, Project: m.Project, Node: a.o.NodeID}
}

// observe advances a resource's metering: first to the disk, then to the store.
func (a *Agent) observe(ctx context.Context, r meter.Resource, o meter.Observation) error {
	a.usageMu.Lock()
	defer a.usageMu.Unlock()
	if a.ended[r.ID] {
		return nil // the caller's news are old
	}
	path := a.usagePath(r.ID)
	f, err := readUsage(path)
	if err != nil {
		return err
	}
	if err := a.record(ctx, f.Pending); err != nil { // of before a crash, or a failure
		return err
	}
	o.At = a.o.Now()
	o.Watched = a.watched[r.ID]
	next, records := meter.Advance(r, f.State, o)
	if err := writeUsage(path, usageFile{State: next, Pending: records}); err != nil {
		return err
	}
	a.watched[r.ID] = true
	if len(records) == 0 {
		return nil
	}
	if err := a.record(ctx, records); err != nil {
		return err
	}
	return writeUsage(path, usageFile{State: next})
}

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

// writeUsage replaces the file whole, on the disk when it returns.
func writeUsage(path string, f usageFile) error {
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(raw)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path)) // or a power cut could bring the old state back
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
