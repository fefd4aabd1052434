package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

const (
	spaceAge = 10 * time.Second
	// plentyAge is the maximum age of an answer with a quarter of the pool free:
	// filling that takes longer.
	plentyAge = time.Minute
)

// Space implements sds.Driver: the used and the free space of the pool, each
// byte counted once regardless of the number of copies. The answer is up to
// ten seconds old.
func (d *Driver) Space(ctx context.Context) (sds.Space, error) {
	if s, young := d.knownSpace(spaceAge); young && ctx.Err() == nil {
		return s, nil
	}
	s, err := d.freshSpace(ctx)
	if err != nil {
		return s, err
	}
	d.spaceMu.Lock()
	defer d.spaceMu.Unlock()
	d.space, d.asked = s, d.opt.Now()
	return s, nil
}

// knownSpace returns the last answer, and whether it is younger than age.
func (d *Driver) knownSpace(age time.Duration) (s sds.Space, young bool) {
	d.spaceMu.Lock()
	defer d.spaceMu.Unlock()
	return d.space, !d.asked.IsZero() && d.opt.Now().Sub(d.asked) < age
}

func (d *Driver) freshSpace(ctx context.Context) (sds.Space, error) {
	raw, err := d.runner().Run(ctx, nil, "ceph", "df", "detail", "--format", "json")
	if err != nil {
		return sds.Space{}, fmt.Errorf("query the free space of the cluster: %w", err)
	}
	d.spaceMu.Lock()
	last := d.space
	d.spaceMu.Unlock()
	return decodeSpace(raw, d.opt.Pool, last)
}

// decodeSpace decodes "ceph df detail". While more copies are degraded than
// there should be, Ceph computes a negative value and prints it as 2^64 minus
// its amount: then the previous total is a better estimate.
func decodeSpace(raw []byte, pool string, last sds.Space) (sds.Space, error) {
	var df struct {
		Pools []struct {
			Name  string
			Stats struct {
				Stored   int64
				MaxAvail uint64 `json:"max_avail"`
				Quota    int64  `json:"quota_bytes"`
			}
		}
	}
	if err := json.Unmarshal(raw, &df); err != nil {
		return sds.Space{}, fmt.Errorf("ceph df: %w", err)
	}
	for _, p := range df.Pools {
		if p.Name != pool {
			continue
		}
		stored, free := max(0, p.Stats.Stored), int64(p.Stats.MaxAvail)
		if free < 0 {
			free = max(0, last.TotalBytes-stored)
		}
		if p.Stats.Quota > 0 {
			free = min(free, max(0, p.Stats.Quota-stored))
		}
		return sds.Space{TotalBytes: stored + free, FreeBytes: free}, nil
	}
	// The numbers come from a manager: one that has just started has none.
	return sds.Space{}, api.Errorf(api.CodeUnavailable, "ceph df does not contain pool %q", pool).
		WithHint("try again in a moment; if it persists, check that a manager is active: ceph -s")
}

// room returns insufficient_disk if want more bytes do not fit.
func (d *Driver) room(ctx context.Context, want int64) error {
	if s, young := d.knownSpace(plentyAge); young && s.FreeBytes-want > s.TotalBytes/4 && ctx.Err() == nil {
		return nil
	}
	s, err := d.Space(ctx)
	if err != nil {
		return d.explain(ctx, err)
	}
	if s.FreeBytes < want || s.FreeBytes == 0 {
		return diskFull()
	}
	return nil
}
