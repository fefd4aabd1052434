package cli

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestEveryKindHasCommands verifies that every kind of the API can be used from the command
// line.
func TestEveryKindHasCommands(t *testing.T) {
	// Services have no commands of a kind: WHMCS creates them for orders through the API.
	want := []api.Kind{api.KindService}
	for _, k := range new(App).kinds() {
		want = append(want, k.name())
	}
	var got []api.Kind
	for _, k := range api.Kinds() {
		got = append(got, k.Kind)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("kinds of the API: got %q, want those of kinds() and Service: %q", got, want)
	}
}
