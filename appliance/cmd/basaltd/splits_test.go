package main

import (
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

func TestParties(t *testing.T) {
	names := map[string]string{"a": "n1", "b": "n2", "c": "n3"}
	of := func(sums map[string]string) map[string]state.Part {
		all := map[string]state.Part{}
		for id, s := range sums {
			all[id] = state.Part{Sum: []byte(s)}
		}
		return all
	}
	for want, sums := range map[string]map[string]string{
		"n1 differs from n2":                      {"a": "x", "b": "y"},
		"n1 differs from n2 differs from n3":      {"a": "x", "b": "y", "c": "z"},
		"n1 and n2 differs from n3 and node-dddd": {"a": "x", "b": "x", "c": "y", "node-dddd": "y"},
	} {
		if got := parties(of(sums), names); got != want {
			t.Errorf("parties = %q, want %q", got, want)
		}
	}
}

// TestSplits: a split is reported until the part has a majority, or for two days.
func TestSplits(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(bucket string) state.Place { return state.Place{Bucket: bucket} }
	var s splits
	if err := s.why(now); err != nil {
		t.Fatalf("why without splits = %v, want nil", err)
	}
	s.add(split{from: at("objects"), groups: "n1 differs from n2", index: 7, at: now})
	s.add(split{from: at(""), groups: "n1 differs from n3", index: 8, at: now.Add(time.Hour)})
	if err := s.why(now); err == nil || err.Error() != "n1 differs from n3; seen from the beginning on, at entry 8 of the log" {
		t.Errorf("why of two splits = %v, want the one at the beginning of the tables", err)
	}
	s.agreed(at("a"), at("b"))
	if from, ok := s.first(now); !ok || from.Bucket != "" {
		t.Errorf("first after another part agreed = %v, %v, want the beginning", from, ok)
	}
	s.agreed(at(""), at("objects"))
	if from, ok := s.first(now); !ok || from.Bucket != "objects" {
		t.Errorf("first after the first part agreed = %v, %v, want objects", from, ok)
	}
	if err := s.why(now.Add(splitKept + time.Second)); err != nil {
		t.Errorf("why after two days = %v, want nil", err)
	}
	s.add(split{from: at("objects"), groups: "n1 differs from n2", at: now})
	s.agreed(at("names"), state.Place{})
	if err := s.why(now); err != nil {
		t.Errorf("why after the last part agreed = %v, want nil", err)
	}
	for i := range 2 * maxSplits {
		s.add(split{from: state.Place{Bucket: "objects", Key: []byte{byte(i)}}, at: now})
	}
	if len(s.all) != maxSplits {
		t.Errorf("splits kept = %d, want at most %d", len(s.all), maxSplits)
	}
	s.add(split{from: s.all[0].from, groups: "n1 differs from n4", at: now})
	if len(s.all) != maxSplits || s.all[0].groups != "n1 differs from n4" {
		t.Errorf("after adding the same part again: %d splits, the first %+v, want %d with the new groups", len(s.all), s.all[0], maxSplits)
	}
}

// TestStandStuck: no leader can be elected without the node whose store is lost, unless the
// others are a majority.
func TestStandStuck(t *testing.T) {
	for _, c := range []struct {
		voters, answers string
		stuck           bool
	}{
		{"a", "", true}, {"a", "b", true}, {"ab", "b", true}, {"abc", "b", true}, {"abc", "bc", false},
		{"bcd", "bc", false}, {"bcd", "b", true}, {"", "", true}, {"abcde", "bcd", false}, {"abcde", "bcf", true},
	} {
		split := func(s string) (out []string) {
			for _, r := range s {
				out = append(out, string(r))
			}
			return slices.Clip(out)
		}
		if got := (clusterView{self: "a", voters: split(c.voters), answers: split(c.answers)}).stuck(); got != c.stuck {
			t.Errorf("voters %q, answers %q: stuck = %v, want %v", c.voters, c.answers, got, c.stuck)
		}
	}
}
