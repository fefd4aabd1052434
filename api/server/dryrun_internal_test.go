package server

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestWhatHasADryRun checks that exactly the operations that create, change or patch an
// object of a kind have dry runs, and final invoices, whose amount is shown before; all others
// refuse the parameter.
func TestWhatHasADryRun(t *testing.T) {
	want := map[string]bool{"IssueFinalInvoices": true}
	for _, k := range api.Kinds() {
		if k.Verbs&api.CanCreate != 0 && !k.NoDryRun {
			want["Create"+string(k.Kind)] = true
		}
		if k.Verbs&api.CanUpdate != 0 {
			want["Update"+string(k.Kind)], want["Patch"+string(k.Kind)] = true, true
		}
	}
	if len(want) < 80 {
		t.Errorf("%d operations have a dry run, want at least 80", len(want))
	}
	for name, o := range contract {
		if o.dryRun != want[name] {
			t.Errorf("%s has a dry run = %v, want %v", name, o.dryRun, want[name])
		}
		delete(want, name)
		ctx, err := withDryRun(httptest.NewRequest(o.method, "/?dryRun=all", nil), name, o)
		refused := o.method != http.MethodGet && !o.dryRun
		if refused != (api.CodeOf(err) == api.CodeInvalid && err != nil) || dryRun(ctx) != o.dryRun {
			t.Errorf("%s %s with dryRun=all: error %v, dryRun = %v; want refused: %v", o.method, name, err, dryRun(ctx), refused)
		}
	}
	if len(want) > 0 {
		t.Errorf("openapi.yaml has no operation %q, want one with a dry run", slices.Sorted(maps.Keys(want)))
	}
}
