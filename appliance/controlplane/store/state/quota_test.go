package state

import (
	"encoding/json"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// Objects from before level 8 count from that level on, even where they exceed the
// limits.
func TestKindsCountFromTheirLevel(t *testing.T) {
	tb := bare(t)
	put := func(kind api.Kind, id string, limits api.Amounts) api.Command {
		c := api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: "org-1", Data: json.RawMessage(`{}`), Limits: limits}
		if kind == api.KindOrganization {
			c.Organization = ""
		}
		return c
	}
	index := uint64(0)
	apply := func(raw []byte) Answer {
		t.Helper()
		index++
		answers, _ := mustApply(t, tb, Entry{index, raw})
		return answers[0]
	}
	batch := func(c ...api.Command) *api.Error {
		t.Helper()
		raw, err := EncodeBatch(api.Batch{Commands: c})
		if err != nil {
			t.Fatal(err)
		}
		return apply(raw).Refused
	}
	sums := func(want int64) {
		t.Helper()
		if err := tb.read(func(v View) error {
			n, err := v.sum(sum{key{api.KindOrganization, "org-1"}, api.CountQuota(api.KindNetwork)})
			if err == nil && n != want {
				t.Errorf("counted networks of org-1 = %d, want %d", n, want)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch(put(api.KindOrganization, "org-1", api.Amounts{"networks": 1}), put(api.KindNetwork, "net-1", nil), put(api.KindNetwork, "net-2", nil)); err != nil {
		t.Fatal(err)
	}
	sums(0)
	raise, err := EncodeSettlement(Settlement{Level: countsLevel, ID: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	apply(raise)
	sums(2)
	apply(raise) // the second time it has no effect
	sums(2)
	if err := batch(put(api.KindNetwork, "net-3", nil)); err == nil || err.Code != api.CodeQuota {
		t.Errorf("create a network beyond the quota: %v, want code %s", err, api.CodeQuota)
	}
	drop := func(id string) api.Command {
		return api.Command{Op: api.OpDelete, Kind: api.KindNetwork, ID: id, Expect: api.AnyRevision}
	}
	if err := batch(drop("net-1"), drop("net-2"), put(api.KindNetwork, "net-3", nil)); err != nil {
		t.Errorf("replace networks within the quota: %v", err)
	}
	sums(1)
}
