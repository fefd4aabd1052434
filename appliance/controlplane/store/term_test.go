package store

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func TestBatchOfAnotherTerm(t *testing.T) {
	f, err := newFSM(bare(t))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(index, term, for_ uint64, id string) *raft.Log {
		raw, err := state.EncodeBatch(api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Name: id, Data: []byte("{}")}}})
		if err != nil {
			t.Fatal(err)
		}
		return &raft.Log{Type: raft.LogCommand, Index: index, Term: term, Data: termed(withTerm(context.Background(), for_), raw)}
	}
	answers := f.ApplyBatch([]*raft.Log{entry(1, 5, 5, "flv-1"), entry(2, 7, 5, "flv-2"), entry(3, 7, 7, "flv-3")})
	for i, want := range []api.Code{"", api.CodeConflict, ""} {
		a := answers[i].(state.Answer)
		if a.Refused == nil && want != "" || a.Refused != nil && a.Refused.Code != want {
			t.Errorf("answer to entry %d = %+v, want code %q", i+1, a, want)
		}
	}
	if err := f.tables.read(func(v state.View) error {
		if v.Applied() != 3 {
			t.Errorf("applied index = %d, want 3", v.Applied())
		}
		for id, want := range map[string]bool{"flv-1": true, "flv-2": false, "flv-3": true} {
			if _, err := v.Get(api.KindFlavor, id); (err == nil) != want {
				t.Errorf("%s exists: %v, want %v", id, err == nil, want)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestApplyInTerm(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), NodeID: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(id string) api.Batch {
		return api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Name: id, Data: []byte("{}")}}}
	}
	term, err := s.Verify(t.Context())
	if err != nil || term == 0 || term != s.LeaderTerm() {
		t.Fatalf("Verify() = %d, %v; want the term %d", term, err, s.LeaderTerm())
	}
	if _, err := s.ApplyInTerm(t.Context(), term, put("flv-1")); err != nil {
		t.Errorf("apply in the current term: %v", err)
	}
	if _, err := s.ApplyInTerm(t.Context(), term+1, put("flv-2")); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("apply in another term: %v, want code %s", err, api.CodeUnavailable)
	}
}

// A batch of a past term that is the last in the log does not block readers: it is
// never applied to the tables.
func TestReadsAfterBatchOfPastTerm(t *testing.T) {
	s := open(t, Options{})
	raw, err := state.EncodeBatch(api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Name: "flv-1", Data: []byte("{}")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.raft.Apply(termed(withTerm(t.Context(), s.LeaderTerm()+1), raw), time.Minute).Error(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := s.ReadIndex(ctx); err != nil {
		t.Errorf("ReadIndex after a batch of a past term: %v", err)
	}
}

// A batch restricted to one term keeps its claims.
func TestClaimsOfATerm(t *testing.T) {
	s := open(t, Options{})
	term := s.LeaderTerm()
	if _, err := s.ApplyInTerm(t.Context(), term, statetest.Claims("flv-1", "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ApplyInTerm(t.Context(), term, statetest.Claims("flv-2", "a")); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("claim a name twice: %v, want code %s", err, api.CodeConflict)
	}
}

// A batch restricted to one term keeps its amounts.
func TestQuotasOfATerm(t *testing.T) {
	s := open(t, Options{})
	if _, err := s.ApplyInTerm(t.Context(), s.LeaderTerm(), statetest.Quotas()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Sums(t.Context(), api.KindOrganization, "org-1"); err != nil || got["a"] != 8 {
		t.Errorf("in use of org-1 = %v, %v; want 8 of a", got, err)
	}
}

// Every kind of batch can be restricted to a term, also those that raise events and
// record.
func TestEveryVersionOfATerm(t *testing.T) {
	s := open(t, Options{})
	term := s.LeaderTerm()
	raising := statetest.Claims("flv-1")
	raising.Commands[0].Event = &api.CommandEvent{Type: "budget.reached", Organization: "org-1"}
	noted := statetest.Claims("flv-2")
	noted.Audit = &api.AuditNote{Operation: "CreateFlavor"}
	for i, b := range []api.Batch{raising, noted, statetest.Claims("flv-3", "a"), statetest.Claims("flv-4"), statetest.Use(0)} {
		if _, err := s.ApplyInTerm(t.Context(), term, b); err != nil {
			t.Errorf("apply batch %d in its term: %v", i, err)
		}
	}
	if page, err := s.Records(t.Context(), api.RecordQuery{Limit: 10}); err != nil || len(page.Items) != 3 {
		t.Errorf("records = %+v, %v; want 3", page, err)
	}
	if page, err := s.Events(t.Context(), api.EventQuery{Limit: 10}); err != nil || len(page.Items) != 1 {
		t.Errorf("events = %+v, %v; want 1", page, err)
	}
}
