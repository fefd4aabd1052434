package main

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestGather checks that all other nodes are asked, and that the answers of the rest are
// returned if one does not answer.
func TestGather(t *testing.T) {
	dead := ""
	ask := func(_ context.Context, id string) ([]string, error) {
		if id == dead {
			return nil, errors.New("unreachable")
		}
		return []string{id}, nil
	}
	for _, c := range []struct {
		dead     string
		want     []string
		complete bool
	}{{"", []string{"b", "c"}, true}, {"c", []string{"b"}, false}, {"a", []string{"b", "c"}, true}} {
		dead = c.dead
		got, complete := gather(t.Context(), []string{"a", "b", "c"}, "a", ask)
		slices.Sort(got)
		if !slices.Equal(got, c.want) || complete != c.complete {
			t.Errorf("answers without %q = %q, complete %t; want %q, %t", c.dead, got, complete, c.want, c.complete)
		}
	}
}
