package agent

import (
	"encoding/json"
	"errors"
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

func (a *Agent) runPath(id api.InstanceID) string { return filepath.Join(a.filesOf(id), "run.json") }

// readRun of an instance without one is zero: of before there were epochs.
func (a *Agent) readRun(id api.InstanceID) (r runFile, err error) {
	raw, err := os.ReadFile(a.runPath(id))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(raw, &r)
}

func (a *Agent) writeRun(id api.InstanceID, r runFile) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.filesOf(id), 0o755); err != nil {
		return err
	}
	return a.writeFile(a.runPath(id), raw)
}

// endRun notes that this node is about to end a run. Should somebody want the
// instance to run again before that has been said, it is started again: its
// guest did not end it.
func (a *Agent) endRun(id api.InstanceID) error {
	r, err := a.readRun(id)
	if err != nil || r.Interrupted {
		return err
	}
	r.Interrupted = true
	return a.writeRun(id, r)
}
