package member

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/store"
)

// have writes Raft's members as "a* b+ c": * leads, + votes.
func have(text string) (out []store.Member) {
	for _, w := range strings.Fields(text) {
		id := strings.TrimRight(w, "*+")
		out = append(out, store.Member{ID: id, Voter: w != id, Leader: strings.HasSuffix(w, "*")})
	}
	return out
}

// want writes Node objects as "a+ b": + is to vote.
func want(text string) (out []api.Node) {
	for _, w := range strings.Fields(text) {
		id := strings.TrimRight(w, "+")
		out = append(out, api.Node{Meta: api.Meta{ID: id}, Assignment: api.NodeAssignment{Voter: w != id}})
	}
	return out
}

func TestNextChange(t *testing.T) {
	for _, c := range []struct{ self, have, want, next string }{
		{"a", "a*", "a+", ""},
		{"a", "a*", "a+ b", "add b"},
		{"a", "a* b", "a+ b+ c+", "add c"},
		{"a", "a* b c", "a+ b+ c+", "promote b"},
		{"a", "a* b+ c", "a+ b+ c+", "promote c"},
		{"a", "a* b+ c+", "a+ b+ c+", ""},
		{"a", "a* b+ c+ d", "a+ b+ d+ c", "promote d"}, // the new vote first
		{"a", "a* b+ c+ d+", "a+ b+ d+ c", "demote c"},
		{"a", "a* b+ c+", "a+ b+", "remove c"},
		{"a", "a* b+ c+", "b+ c+", "transfer a"},
		{"b", "a+ b* c+", "b+ c+", "remove a"},
		{"a", "a* b+ c+", "a b+ c+", "transfer a"}, // it leads and is to give up its vote
		{"a", "a*", "a", ""},                       // the planner has not chosen yet
		{"a", "a* b+ c+", "a b c", ""},
	} {
		got := ""
		if n := nextChange(c.self, have(c.have), want(c.want)); n != nil {
			got = n.verb + " " + n.id
		}
		if got != c.next {
			t.Errorf("have %q, want %q: %q, should be %q", c.have, c.want, got, c.next)
		}
	}
}
