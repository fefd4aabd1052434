package sealed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

const id = "appauthority-cluster"

// TestOneIsMade checks that several nodes that need the object at once all get the
// one that one of them has created.
func TestOneIsMade(t *testing.T) {
	store, made := memstore.New(), atomic.Int64{}
	got := make([]string, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			o, err := Object(t.Context(), store, api.KindAppAuthority, id, func(context.Context) (any, error) { return made.Add(1), nil })
			if err != nil {
				t.Error(err)
			}
			got[i] = string(o.Spec)
		})
	}
	all.Wait()
	for _, g := range got {
		if g != got[0] || g == "" {
			t.Fatalf("objects of the callers = %q, want the same for all", got)
		}
	}
}

// TestWhatCannotBeMade checks that an error of spec is returned and not retried.
func TestWhatCannotBeMade(t *testing.T) {
	broken := errors.New("no ring")
	_, err := Object(t.Context(), memstore.New(), api.KindAppAuthority, id, func(context.Context) (any, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("Object with a failing spec: error %v, want %v", err, broken)
	}
}
