package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// TestIsNotLeader: the answer of a node that is not the leader arrives as a problem document
// and is recognized, so that the caller asks the next leader instead of failing.
func TestIsNotLeader(t *testing.T) {
	var sent *api.Error
	if !errors.As(store.ErrNotLeader, &sent) {
		t.Fatalf("ErrNotLeader is %T, want an *api.Error", store.ErrNotLeader)
	}
	came := fmt.Errorf("call node n2: %w", sent.Problem().AsError())
	if !isNotLeader(came) {
		t.Errorf("isNotLeader(%q) = false, want true", came)
	}
	for _, other := range []error{
		errors.New(sent.Message),
		api.Errorf(api.CodeUnavailable, "the node is starting"),
		api.Errorf(api.CodeState, "%s", sent.Message),
	} {
		if isNotLeader(other) {
			t.Errorf("isNotLeader(%q) = true, want false", other)
		}
	}
}
