package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// A node that does not lead is known by its answer, which comes as a problem document:
// the caller asks the next leader, and does not fail.
func TestIsNotLeader(t *testing.T) {
	var sent *api.Error
	if !errors.As(store.ErrNotLeader, &sent) {
		t.Fatalf("%v is no *api.Error", store.ErrNotLeader)
	}
	came := fmt.Errorf("call node n2: %w", sent.Problem().AsError())
	if !isNotLeader(came) {
		t.Errorf("%q is not taken for %q", came, store.ErrNotLeader)
	}
	for _, other := range []error{
		errors.New(sent.Message),
		api.Errorf(api.CodeUnavailable, "the node is starting"),
		api.Errorf(api.CodeState, "%s", sent.Message),
	} {
		if isNotLeader(other) {
			t.Errorf("%q is taken for %q", other, store.ErrNotLeader)
		}
	}
}
