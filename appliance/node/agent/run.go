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

// runFile lies beside an instance's seed and says what the domain that is, or
// was, on the node belongs to. It is written before the domain can run.
type runFile struct {
	// Epoch of the assignment under which it runs. A domain of an older one is
	// destroyed.
	Epoch int64  `json:"epoch"`
	Boot  string `json:"boot"`
	// Since it runs on this node; its use is counted here from then.
	Since time.Time `json:"since,omitzero"`
	// Interrupted: it did not end by itself, so it is started again.
	Interrupted bool `json:"interrupted,omitempty"`
	// Over: it has moved away; its use has been counted here to the end.
	Over bool `json:"over,omitempty"`
	// Incoming is the migration by which it comes; Volume was made for it.
	Incoming api.MigrationID `json:"incoming,omitempty"`
	Volume   api.VolumeID    `json:"volume,omitempty"`
	// Left: its source has let go of it. What lies here is the newest of its disk
	// from then on, whatever has become of the machine.
	Left bool `json:"left,omitempty"`
	// Opens are volumes whose keys the hypervisor was given for it.
	Opens []api.VolumeID `json:"opens,omitempty"`
}

func (f *instanceFiles) runPath(id api.InstanceID) string {
	return filepath.Join(f.dir(id), "run.json")
}

// readRun of an instance without one is zero: of before there were epochs.
func (f *instanceFiles) readRun(id api.InstanceID) (r runFile, err error) {
	raw, err := os.ReadFile(f.runPath(id))
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
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir(id), 0o755); err != nil {
		return err
	}
	return f.o.writeFile(f.runPath(id), raw)
}

// NoteStopped notes, for a process beside the agent that shuts guests down, that the
// node ends the instance's run. An instance without files here has none to note.
func NoteStopped(dataDir string, id api.InstanceID) error {
	f := instanceFiles{&Options{DataDir: dataDir}}
	if !exists(f.dir(id)) {
		return nil
	}
	return f.endRun(id)
}

// endRun notes that this node is about to end a run. Should somebody want the
// instance to run again before that has been said, it is started again: its
// guest did not end it.
func (f *instanceFiles) endRun(id api.InstanceID) error {
	r, err := f.readRun(id)
	if err != nil || r.Interrupted {
		return err
	}
	r.Interrupted = true
	return f.writeRun(id, r)
}
