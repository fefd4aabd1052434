package store

import (
	"context"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
)

func TestABatchOfAnotherTermDoesNothing(t *testing.T) {
	f, err := newFSM(bare(t))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(index, term, for_ uint64, id string) *raft.Log {
		raw, err := encodeBatch(api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Name: id, Data: []byte("{}")}}})
		if err != nil {
			t.Fatal(err)
		}
		return &raft.Log{Type: raft.LogCommand, Index: index, Term: term, Data: termed(withTerm(context.Background(), for_), raw)}
	}
	answers := f.ApplyBatch([]*raft.Log{entry(1, 5, 5, "flv-1"), entry(2, 7, 5, "flv-2"), entry(3, 7, 7, "flv-3")})
	for i, want := range []api.Code{"", api.CodeConflict, ""} {
		a := answers[i].(answer)
		if a.refused == nil && want != "" || a.refused != nil && a.refused.Code != want {
			t.Errorf("entry %d: %+v", i+1, a)
		}
	}
	if err := f.tables.read(func(v view) error {
		if v.applied() != 3 {
			t.Errorf("applied %d", v.applied())
		}
		for id, want := range map[string]bool{"flv-1": true, "flv-2": false, "flv-3": true} {
			o, err := v.object(key{api.KindFlavor, id})
			if err != nil || (o != nil) != want {
				t.Errorf("%s: %v, %v", id, o, err)
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
	if err != nil || term == 0 || term != s.LeadTerm() {
		t.Fatal(term, err)
	}
	if _, err := s.ApplyInTerm(t.Context(), term, put("flv-1")); err != nil {
		t.Error(err)
	}
	if _, err := s.ApplyInTerm(t.Context(), term+1, put("flv-2")); api.CodeOf(err) != api.CodeUnavailable {
		t.Error(err)
	}
}
