package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func quotaBatch() api.Batch {
	put := func(kind api.Kind, id, organization, project string, uses, limits api.Amounts) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: organization, Project: project,
			Data: json.RawMessage(`{}`), Uses: uses, Limits: limits}
	}
	return api.Batch{Commands: []api.Command{
		// A backup is in the order of kinds: one of the users comes before the
		// project and the organization, one after.
		put(api.KindOrganization, "org-1", "", "", nil, api.Amounts{"a": 8}),
		put(api.KindProject, "prj-1", "org-1", "", nil, nil),
		put(api.KindFloatingIP, "fip-1", "org-1", "prj-1", api.Amounts{"a": 3}, nil),
		put(api.KindVolume, "vol-1", "org-1", "prj-1", api.Amounts{"a": 5, "b": 2}, nil),
	}}
}

// Quotas come through a backup: limits and what is in use.
func TestQuotasInABackup(t *testing.T) {
	s := open(t, Options{})
	if _, err := s.Apply(t.Context(), quotaBatch()); err != nil {
		t.Fatal(err)
	}
	want := func(s *Store) {
		t.Helper()
		for of, want := range map[key]api.Amounts{
			{api.KindOrganization, "org-1"}: {"a": 8, "b": 2, "volumes": 1, "projects": 1},
			{api.KindProject, "prj-1"}:      {"a": 8, "b": 2, "volumes": 1},
		} {
			if got, err := s.Sums(t.Context(), of.kind, of.id); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s: %v, %v, want %v", of.id, got, err, want)
			}
		}
		_, err := s.Apply(t.Context(), api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-2",
			Organization: "org-1", Project: "prj-1", Data: json.RawMessage(`{}`), Uses: api.Amounts{"a": 1}}}})
		if api.CodeOf(err) != api.CodeQuota {
			t.Errorf("more than the quota: %v", err)
		}
	}
	want(s)
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := RestoreInto(dir, "node-a", bytes.NewReader(backupOf(t, s))); err != nil {
		t.Fatal(err)
	}
	want(open(t, Options{Dir: dir}))
}

// A batch with amounts has a version of its own, in a term too.
func TestQuotasOfATerm(t *testing.T) {
	s := open(t, Options{})
	if _, err := s.ApplyInTerm(t.Context(), s.LeadTerm(), quotaBatch()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Sums(t.Context(), api.KindOrganization, "org-1"); err != nil || got["a"] != 8 {
		t.Errorf("%v, %v", got, err)
	}
	raw, err := encodeBatch(quotaBatch())
	if err != nil || raw[0] != tenancyVersion {
		t.Errorf("version %d, %v", raw[0], err)
	}
	if v := termed(withTerm(t.Context(), 7), raw)[0]; v != 6 || !ofOneTerm(v) {
		t.Errorf("version %d in a term", v)
	}
}

// Objects that were there before level 8 count from it on, and what they have
// beyond the limits stays.
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
	apply := func(raw []byte) answer {
		t.Helper()
		index++
		answers, _, _, err := tb.apply([]entry{{index, raw}})
		if err != nil {
			t.Fatal(err)
		}
		return answers[0]
	}
	batch := func(c ...api.Command) *api.Error {
		t.Helper()
		raw, err := encodeBatch(api.Batch{Commands: c})
		if err != nil {
			t.Fatal(err)
		}
		return apply(raw).refused
	}
	sums := func(want int64) {
		t.Helper()
		if err := tb.read(func(v view) error {
			n, err := v.sum(sum{key{api.KindOrganization, "org-1"}, api.CountQuota(api.KindNetwork)})
			if err == nil && n != want {
				t.Errorf("%d networks are counted, want %d", n, want)
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
	raise, err := encodeSettled(settlement{Level: countsLevel, ID: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	apply(raise)
	sums(2)
	apply(raise) // once
	sums(2)
	if err := batch(put(api.KindNetwork, "net-3", nil)); err == nil || err.Code != api.CodeQuota {
		t.Errorf("a network beyond the quota: %v", err)
	}
	drop := func(id string) api.Command {
		return api.Command{Op: api.OpDelete, Kind: api.KindNetwork, ID: id, Expect: api.AnyRevision}
	}
	if err := batch(drop("net-1"), drop("net-2"), put(api.KindNetwork, "net-3", nil)); err != nil {
		t.Error(err)
	}
	sums(1)
}
