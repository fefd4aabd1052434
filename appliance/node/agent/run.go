package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// runFile is stored beside an instance's seed and records what the node's current
// or last domain of the instance belongs to. It is written before the domain can
// run.
type runFile struct {
	// Epoch is the epoch of the assignment under which the domain runs. A domain of
	// an older one is destroyed.
	Epoch int64  `json:"epoch"`
	Boot  string `json:"boot"`
	// Since is when it began to run on this node; its usage is counted here from
	// then.
	Since time.Time `json:"since,omitzero"`
	// Interrupted is set if the guest did not end the run, so that it is started
	// again.
	Interrupted bool `json:"interrupted,omitempty"`
	// Over is set when it was migrated away and its usage is fully counted here.
	Over bool `json:"over,omitempty"`
	// Root is the root volume of the run, which the machine's state on this node
	// belongs to. Runs of an earlier version have none.
	Root api.VolumeID `json:"root,omitempty"`
	// Incoming is the migration by which it arrives; Volume was created for that.
	Incoming api.MigrationID `json:"incoming,omitempty"`
	Volume   api.VolumeID    `json:"volume,omitempty"`
	// Receives has the volumes of a stopped instance that arrive, and Received those of
	// them that are complete.
	Receives []api.VolumeID `json:"receives,omitempty"`
	Received []api.VolumeID `json:"received,omitempty"`
	// Cells are the CPUs that it will have of its own.
	Cells []api.InstanceCell `json:"cells,omitempty"`
	// Left is set when the migration's source has given it up. From then on the
	// disk on this node is the newest, whatever became of the machine.
	Left bool `json:"left,omitempty"`
	// Opens has the volumes whose keys the hypervisor was given for the migration.
	Opens []api.VolumeID `json:"opens,omitempty"`
}

// isOf reports whether the run is of the instance's present root volume, and not of one
// that a reinstallation has replaced since.
func (r runFile) isOf(in api.Instance, active bool) bool {
	if r.Root == "" { // of an earlier version: only what is stopped is reinstalled
		return active || in.Spec.RootVolume == ""
	}
	return r.Root == in.Assignment.RootVolume
}

func (f *instanceFiles) runPath(id api.InstanceID) string {
	return filepath.Join(f.dir(id), "run.json")
}

// readRun returns the run's file, or the zero value if there is none.
func (f *instanceFiles) readRun(id api.InstanceID) (r runFile, err error) {
	return readRunFile(f.runPath(id))
}

func readRunFile(path string) (r runFile, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("decode file of the run: %w", err)
	}
	return r, nil
}

func (f *instanceFiles) writeRun(id api.InstanceID, r runFile) error {
	return f.writeRunFile(f.runPath(id), r)
}

func (f *instanceFiles) writeRunFile(path string, r runFile) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return f.o.writeFile(path, raw)
}

// NoteStopped records, for a process beside the agent that shuts guests down, that
// the node ends the instance's run. It does nothing if the instance has no files on
// this node.
func NoteStopped(dataDir string, id api.InstanceID) error {
	f := instanceFiles{&Options{DataDir: dataDir}}
	if !exists(f.dir(id)) {
		return nil
	}
	return f.endRun(id)
}

// endRun records that this node is about to end a run. If the instance is to run
// again before the end was reported, it is started again, because its guest did not
// end the run.
func (f *instanceFiles) endRun(id api.InstanceID) error {
	r, err := f.readRun(id)
	if err != nil || r.Interrupted {
		return err
	}
	r.Interrupted = true
	return f.writeRun(id, r)
}
