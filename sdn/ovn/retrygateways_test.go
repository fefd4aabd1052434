package ovn

import (
	"slices"
	"testing"
)

func TestRetriesBecomeRare(t *testing.T) {
	l := checkCounts{}
	var at []int
	for look := 1; look <= 200; look++ {
		if due := l.next([]string{"a"}); len(due) > 0 {
			at = append(at, look)
		}
	}
	if want := []int{2, 4, 8, 16, 32, 64, 128, 192}; !slices.Equal(at, want) {
		t.Errorf("retries at checks %v, want %v", at, want)
	}
}

func TestRetriesRestart(t *testing.T) {
	l := checkCounts{}
	for i, step := range []struct{ without, want []string }{
		{[]string{"b", "a"}, nil},
		{[]string{"b"}, []string{"b"}},
		{[]string{"b", "a"}, nil}, // a had a node meanwhile
		{[]string{"b", "a"}, []string{"a", "b"}},
		{nil, nil},
	} {
		if due := l.next(step.without); !slices.Equal(due, step.want) {
			t.Errorf("check %d: retries of %v, want %v", i+1, due, step.want)
		}
	}
	if len(l) != 0 {
		t.Errorf("counts = %v after all ports have nodes, want none", l)
	}
}
