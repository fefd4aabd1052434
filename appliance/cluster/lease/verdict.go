package lease

import (
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// State of a node in the leader's eyes.
type State int

// The states; the package comment draws them.
const (
	Alive State = iota
	Silent
	Suspect
	Fenced
)

func (s State) String() string {
	return [...]string{"Alive", "Silent", "Suspect", "Fenced"}[s]
}

// Verdict on one node.
type Verdict struct {
	Node  api.NodeID
	Epoch int64
	// Term in which the verdict holds: what it leads to must be committed in
	// that term.
	Term  uint64
	State State
	Since Instant // of the state
	Heard Instant // the last heartbeat; the election, before the first
	// LeaseEndsBy is when the node's lease is over at the latest, if no more
	// is granted; FencedBy when nothing movable runs there for certain.
	LeaseEndsBy, FencedBy Instant
	Witnesses             []Witness
	Why                   string // in plain words
}

// Witness has a present opinion of a node.
type Witness struct {
	Node  api.NodeID
	Name  string
	Sees  bool // on any path
	Paths []Sight
}

// why a node is in its state, for people. members is the size of the cluster.
func why(now Instant, v Verdict, n *granted, silent time.Duration, members int) string {
	quiet := "no heartbeat for " + silent.String()
	var blind, seeing []string
	for _, w := range v.Witnesses {
		if w.Sees {
			seeing = append(seeing, w.Name)
		} else {
			blind = append(blind, w.Name)
		}
	}
	switch v.State {
	case Alive:
		return fmt.Sprintf("heartbeat %s ago", silent)
	case Silent:
		switch {
		case members <= Witnesses:
			return fmt.Sprintf("%s. With one other node left nobody can tell a dead node from a cut cable, so it is not declared dead by itself: if you know that it is off, run `basalt node remove %s`", quiet, n.Name)
		case len(blind) == 1 && len(seeing) > 0:
			return fmt.Sprintf("%s; only %s cannot reach it, %s can; two must not", quiet, blind[0], list(seeing))
		case len(seeing) > 0:
			return fmt.Sprintf("%s, but %s can reach it", quiet, list(seeing))
		case len(blind) == 1:
			return fmt.Sprintf("%s; %s cannot reach it, and nobody else has looked: two must not", quiet, blind[0])
		}
		return quiet + "; nobody has looked for it yet"
	case Suspect:
		reason := list(blind) + " reach it on no path"
		if n.vouched {
			reason = "an operator says that it is off"
		}
		return fmt.Sprintf("%s; %s. Its lease %s; its instances may start elsewhere in %s", quiet, reason,
			when("ends", "ended", v.LeaseEndsBy.Sub(now)), max(v.FencedBy.Sub(now), 0).Round(time.Second))
	default:
		if n.Lost && silent < Silence {
			return fmt.Sprintf("declared lost; heartbeat %s ago: it is back and clears up", silent)
		}
		if n.Lost {
			return "declared lost; " + quiet
		}
		return fmt.Sprintf("%s; its last lease ended at least %s ago, so whatever could run elsewhere was stopped there", quiet, now.Sub(v.LeaseEndsBy).Truncate(time.Second))
	}
}

func when(future, past string, d time.Duration) string {
	if d > 0 {
		return fmt.Sprintf("%s in %s", future, d.Round(time.Second))
	}
	return fmt.Sprintf("%s %s ago", past, (-d).Round(time.Second))
}

func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
