package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

const recordVersion = 1

// Record is what a node stores about its membership. It is read before anything
// else starts.
type Record struct {
	Version int            `json:"version"`
	State   api.SetupState `json:"state"`
	Cluster string         `json:"cluster"`
	Node    api.NodeID     `json:"node"`
	// Founder means that the node created or restored the cluster. It starts Raft
	// alone.
	Founder bool `json:"founder,omitempty"`
	// Recover means that quorum is lost: at its next start this node becomes the
	// only member, and all others are removed.
	Recover bool `json:"recover,omitempty"`
	// Rebuild means that the node's store is rebuilt from the other members.
	Rebuild bool `json:"rebuild,omitempty"`
	// Peers holds the last known addresses of other members.
	Peers map[api.NodeID][]string `json:"peers,omitempty"`
}

// Dir returns the directory for membership files of a node whose state is in data.
func Dir(data string) string { return filepath.Join(data, "cluster") }

func recordFile(dir string) string { return filepath.Join(dir, "member.json") }

// WatermarkFile returns the file that records what the node has acknowledged to the others.
func WatermarkFile(dir string) string { return filepath.Join(dir, "promise") }

// Load reads the record in dir. A node without one is Unconfigured.
func Load(dir string) (Record, error) {
	raw, err := os.ReadFile(recordFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{State: api.SetupUnconfigured}, nil
	}
	var r Record
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: %w", recordFile(dir), err)
	case r.Version > recordVersion:
		return r, fmt.Errorf("%s was written by a newer release of Basalt: install that release", recordFile(dir))
	case r.State != api.SetupMember && r.State != api.SetupLeft || r.Node == "":
		return r, fmt.Errorf("%s is damaged: restore it, or join again with an empty data directory", recordFile(dir))
	}
	return r, nil
}

// Save writes the record.
func (r Record) Save(dir string) error {
	r.Version = recordVersion
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(recordFile(dir), append(raw, '\n'), 0o600)
}
