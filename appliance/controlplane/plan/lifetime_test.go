package plan

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// meterBook applies planned commands, as the store would: a group completely or not at
// all, a record once per ID.
type meterBook struct {
	s       *State
	records map[string]api.UsageRecordSpec
}

func (b *meterBook) apply(t *testing.T, group []api.Command) {
	t.Helper()
	for _, c := range group {
		switch c.Op {
		case api.OpRecord:
			var r api.UsageRecordSpec
			if err := json.Unmarshal(c.Data, &r); err != nil {
				t.Fatal(err)
			}
			if _, again := b.records[c.ID]; again {
				t.Errorf("usage %+v was recorded twice, want once", r)
			}
			if api.HourOf(r.End) != r.Start.Truncate(time.Hour) || r.Quantity <= 0 {
				t.Errorf("usage %+v, want a positive quantity within one hour", r)
			}
			b.records[c.ID] = r
		case api.OpAssign:
			if c.Kind == api.KindFloatingIP {
				f := b.s.FloatingIPs[c.ID]
				if c.Claims != nil || json.Unmarshal(c.Data, &f.Assignment) != nil {
					t.Fatalf("unexpected command %+v, want an assignment without claims", c)
				}
				b.s.FloatingIPs[c.ID] = f
				continue
			}
			x := b.s.Snapshots[c.ID]
			if err := json.Unmarshal(c.Data, &x.Assignment); err != nil {
				t.Fatal(err)
			}
			b.s.Snapshots[c.ID] = x
		case api.OpForget:
			delete(b.s.FloatingIPs, c.ID)
			delete(b.s.Snapshots, c.ID)
		default:
			t.Fatalf("unexpected command %+v", c)
		}
	}
}

// Whichever leaders plan, and however long none does: every unit from when an object is
// first seen until it is deleted is recorded once.
func TestLifetimesAreRecordedOnce(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		b := &meterBook{emptyState(), map[string]api.UsageRecordSpec{}}
		at := now.Add(time.Duration(r.Int64N(int64(time.Hour))))
		meta := func(id string) api.Meta {
			return api.Meta{ID: id, Name: id, Revision: 1, Organization: "org-1", Project: "prj-1", Finalizers: []string{api.FinalizerMeter}}
		}
		b.s.FloatingIPs["fip-1"] = api.FloatingIP{Meta: meta("fip-1"), Assignment: api.FloatingIPAssignment{Address: "192.0.2.7"}}
		b.s.FloatingIPs["fip-2"] = api.FloatingIP{Meta: meta("fip-2")} // never gets an address: costs nothing
		rate := 1 + r.Int64N(1<<40)
		b.s.Snapshots["snp-1"] = api.Snapshot{Meta: meta("snp-1"), Status: api.SnapshotStatus{Phase: api.SnapshotReady, SizeBytes: rate}}
		round := func() {
			for i := 0; ; i++ {
				cmds := planLifetimes(b.s, nil, at)
				if len(cmds) == 0 {
					return
				}
				if i > 50 {
					t.Fatalf("seed %d: the plan does not settle: %v", seed, cmds)
				}
				for _, g := range Groups(cmds) {
					if r.IntN(4) > 0 { // otherwise the leader is killed before it
						b.apply(t, g)
					}
				}
			}
		}
		round()
		began := at
		for range r.IntN(30) {
			at = at.Add(time.Duration(r.Int64N(int64(3 * time.Hour))))
			if r.IntN(10) == 0 {
				at = at.Add(time.Duration(r.Int64N(int64(40 * 24 * time.Hour))))
			}
			if r.IntN(10) == 0 {
				at = at.Add(-time.Duration(r.Int64N(int64(time.Minute)))) // another leader's clock
			}
			round()
		}
		ended := at
		for id, f := range b.s.FloatingIPs {
			f.Meta.DeletedAt = &ended
			b.s.FloatingIPs[id] = f
		}
		x := b.s.Snapshots["snp-1"]
		x.Meta.DeletedAt = &ended
		b.s.Snapshots["snp-1"] = x
		at = at.Add(time.Duration(r.Int64N(int64(5 * time.Hour))))
		round()
		if len(b.s.FloatingIPs)+len(b.s.Snapshots) > 0 {
			t.Fatalf("seed %d: deleted objects still exist: %+v", seed, b.s)
		}
		sums := map[string]float64{}
		for _, u := range b.records {
			sums[u.Resource] += float64(u.Quantity)
		}
		lived := max(ended.Sub(began), 0).Seconds()
		for what, per := range map[string]float64{"fip-1": 1, "snp-1": float64(rate)} {
			// Less than a whole unit at either end.
			if want := lived * per; math.Abs(sums[what]-want) > max(1, want*1e-9) {
				t.Errorf("seed %d: recorded %.0f of %s, want %.3f", seed, sums[what], what, want)
			}
		}
		if len(sums) > 2 {
			t.Errorf("seed %d: recorded resources = %v, want fip-1 and snp-1 only", seed, sums)
		}
	}
}
