package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Characters that JSON may escape must be returned as they were sent, or the Spec would
// look changed.
func TestSameSpecIsNoChange(t *testing.T) {
	s := open(t, Options{})
	b := api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindInstance, ID: "ins-1", Name: "x",
		Expect: api.AnyRevision, Data: []byte(`{"userData": "<a href=\"x&y\">\u2028é"}`)}}}
	first, err := s.Apply(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Apply(t.Context(), b)
	if err != nil || s.Revision() != 1 {
		t.Errorf("revision after the same Spec again = %d, %v; want 1", s.Revision(), err)
	}
	got, err := s.Get(t.Context(), api.KindInstance, "ins-1")
	if d := cmp.Diff(first[0], got) + cmp.Diff(first, second); d != "" || err != nil {
		t.Errorf("objects differ (-first +later), error %v:\n%s", err, d)
	}
}

func TestLimitsOfABatch(t *testing.T) {
	s := open(t, Options{})
	put := api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Data: []byte(`{}`)}
	for name, c := range map[string]struct {
		b    api.Batch
		code api.Code
	}{
		"many":  {api.Batch{Commands: make([]api.Command, state.MaxCommands+1)}, api.CodeTooLarge},
		"large": {api.Batch{Commands: []api.Command{{Op: 1, Kind: "Flavor", ID: "x", Data: []byte(`"` + strings.Repeat("x", state.MaxBatchBytes) + `"`)}}}, api.CodeTooLarge},
		"nul":   {api.Batch{Commands: []api.Command{{Op: 1, Kind: "Flavor", ID: "a\x00b", Data: put.Data}}}, api.CodeInvalid},
		"long":  {api.Batch{Commands: []api.Command{{Op: 1, Kind: "Flavor", ID: strings.Repeat("x", 600), Data: put.Data}}}, api.CodeInvalid},
		"id":    {api.Batch{ID: strings.Repeat("x", 600), Commands: []api.Command{put}}, api.CodeInvalid},
	} {
		if _, err := s.Apply(t.Context(), c.b); api.CodeOf(err) != c.code {
			t.Errorf("apply batch %q: %v, want code %s", name, err, c.code)
		}
	}
	if s.Revision() != 0 {
		t.Errorf("revision after refused batches = %d, want 0", s.Revision())
	}
}
