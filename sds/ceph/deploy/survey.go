package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// Survey is the state of the whole cluster as the mons report it.
type Survey struct {
	Cluster              Cluster
	Health               Health
	SizeBytes, UsedBytes int64 // of all disks
	Usage                map[string]PoolUsage
}

// PoolUsage is the usage of one pool; each byte is counted once, regardless of the
// number of copies.
type PoolUsage struct{ UsedBytes, FreeBytes int64 }

// Survey queries the mons, with one program.
func (n Node) Survey(ctx context.Context) (Survey, error) {
	raw, err := n.ceph(ctx, clusterQueries+"health detail\ndf\n")
	if err != nil {
		return Survey{}, err
	}
	return decodeSurvey(raw)
}

func decodeSurvey(raw []byte) (s Survey, err error) {
	c, err := decodeCluster(raw)
	if err != nil {
		return s, err
	}
	s.Cluster = *c
	var skip, health json.RawMessage
	var df struct {
		Stats struct {
			Total int64 `json:"total_bytes"`
			Used  int64 `json:"total_used_raw_bytes"`
		}
		Pools []struct {
			Name  string
			Stats struct {
				Stored   int64
				MaxAvail uint64 `json:"max_avail"`
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	for _, into := range []any{&skip, &skip, &skip, &skip, &health, &df} {
		if err := d.Decode(into); err != nil {
			return s, fmt.Errorf("decode answer of the monitors: %w", err)
		}
	}
	s.SizeBytes, s.UsedBytes = max(df.Stats.Total, 0), max(df.Stats.Used, 0)
	s.Usage = map[string]PoolUsage{}
	for _, p := range df.Pools {
		// A degraded pool may have a negative value as an unsigned number.
		s.Usage[p.Name] = PoolUsage{UsedBytes: max(p.Stats.Stored, 0), FreeBytes: max(int64(p.Stats.MaxAvail), 0)}
	}
	s.Health, err = Explain(health)
	return s, err
}

// Images returns how many RBD images the pool contains, which would be lost
// with it.
func (n Node) Images(ctx context.Context, pool string) (int, error) {
	raw, err := n.admin().Run(ctx, nil, "rbd", "ls", "--format", "json", pool)
	if err != nil {
		return 0, fmt.Errorf("list the images of pool %s: %w", pool, err)
	}
	var all []string
	if err := decode(raw, &all); err != nil {
		return 0, err
	}
	return len(all), nil
}

// Probe returns the content of a disk: Blank, or a description.
func Probe(ctx context.Context, fsid, path string) (Found, error) { return probe(ctx, fsid, path) }
