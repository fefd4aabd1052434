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

// Several nodes that need it at once all get what one of them has made.
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
			t.Fatalf("got %q, want the same of all", got)
		}
	}
}

// What fails is not tried for ever.
func TestWhatCannotBeMade(t *testing.T) {
	broken := errors.New("no ring")
	_, err := Object(t.Context(), memstore.New(), api.KindAppAuthority, id, func(context.Context) (any, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
