package membership

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// have parses Raft's members from "a* b+ c": * marks the leader, + a voter.
func have(text string) (out []store.Member) {
	for _, w := range strings.Fields(text) {
		id := strings.TrimRight(w, "*+")
		out = append(out, store.Member{ID: id, Voter: w != id, Leader: strings.HasSuffix(w, "*")})
	}
	return out
}

// want parses Node objects from "a+ b c!": + marks a future voter, ! a lost node.
func want(text string) (out []api.Node) {
	for _, w := range strings.Fields(text) {
		n := api.Node{Meta: api.Meta{ID: strings.TrimRight(w, "+!")}, Assignment: api.NodeAssignment{Voter: strings.Contains(w, "+")}}
		if strings.HasSuffix(w, "!") {
			n.Assignment.State = api.NodeLost
		}
		out = append(out, n)
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
		{"a", "a* b+ c+", "a b+ c+", "transfer a"}, // the leader is to lose its vote
		{"c", "a+ b+ c*", "a c+", "remove b"},      // b is gone: without a's vote it could not be removed
		{"c", "a+ c*", "a c+", "demote a"},
		{"d", "a+ b+ c+ d*", "a b! c+ d+", "demote b"},
		{"a", "a* b+ c+", "a+ c!", "demote c"}, // b is alive and votes for it
		{"a", "a* b+ c+", "b+", "remove c"},
		{"a", "a*", "a", ""}, // the planner has not chosen yet
		{"a", "a* b+ c+", "a b c", ""},
	} {
		got := ""
		if n := nextChange(c.self, have(c.have), want(c.want)); n != nil {
			got = n.verb + " " + n.id
		}
		if got != c.next {
			t.Errorf("members %q, nodes %q: got change %q, want %q", c.have, c.want, got, c.next)
		}
	}
}

// votes records the votes that were given.
type votes struct {
	Raft
	given []string
}

func (v *votes) AddVoter(_ context.Context, id string) error {
	v.given = append(v.given, id)
	return nil
}

// TestNoVoteWithoutAnAnswer checks that a node that is listed but does not answer
// gets no vote, like the old nodes after a restore.
func TestNoVoteWithoutAnAnswer(t *testing.T) {
	away := errors.New("it does not answer")
	v := &votes{}
	answers := func(_ context.Context, id api.NodeID) error {
		if id == "old" {
			return away
		}
		return nil
	}
	if err := carryOut(t.Context(), v, answers, change{"promote", "old"}); !errors.Is(err, away) {
		t.Errorf("got error %v, want that of the node that does not answer", err)
	}
	if err := carryOut(t.Context(), v, answers, change{"promote", "here"}); err != nil {
		t.Error(err)
	}
	if len(v.given) != 1 || v.given[0] != "here" {
		t.Errorf("votes were given to %v, want [here]", v.given)
	}
}
