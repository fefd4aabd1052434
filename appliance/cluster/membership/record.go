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

// Record is what a node knows of its membership before anything else runs.
type Record struct {
	Version int            `json:"version"`
	State   api.SetupState `json:"state"`
	Cluster string         `json:"cluster"`
	Node    api.NodeID     `json:"node"`
	// Founder: the node made the cluster, or restored it: it starts Raft alone.
	Founder bool `json:"founder,omitempty"`
	// Recover: quorum is lost; at the next start this node alone becomes the
	// cluster, and every other one is removed.
	Recover bool `json:"recover,omitempty"`
	// Rebuild: the node's store is made anew of the other members'.
	Rebuild bool `json:"rebuild,omitempty"`
	// Peers are where other members were last known to be.
	Peers map[api.NodeID][]string `json:"peers,omitempty"`
}

// Dir is where a node with its state in data keeps what concerns membership.
func Dir(data string) string { return filepath.Join(data, "cluster") }

func recordFile(dir string) string { return filepath.Join(dir, "member.json") }

// PromiseFile is where the node keeps what it has told the others.
func PromiseFile(dir string) string { return filepath.Join(dir, "promise") }

// Load reads the record in dir; a node without one is Unconfigured.
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
