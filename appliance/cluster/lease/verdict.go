package lease

import (
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// State is the state of a node as the leader sees it.
type State int

// States of a node; see the diagram in the package comment.
const (
	Alive State = iota
	Silent
	Suspect
	Fenced
)

func (s State) String() string {
	return [...]string{"Alive", "Silent", "Suspect", "Fenced"}[s]
}

// Verdict is the leader's judgment of one node.
type Verdict struct {
	Node  api.NodeID
	Epoch int64
	// Term is the term in which the verdict is valid: what it causes must be
	// committed in that term.
	Term          uint64
	State         State
	Since         Instant // of the state
	LastHeartbeat Instant // the last heartbeat, or the election if there was none yet
	// LeaseEndsBy is when the node's lease has expired at the latest, if no further
	// lease is granted. FencedBy is when certainly no movable instance runs there
	// any more.
	LeaseEndsBy, FencedBy Instant
	Witnesses             []Witness
	Why                   string // explains the state to users
}

// Witness is a node that has a current opinion of another.
type Witness struct {
	Node  api.NodeID
	Name  string
	Sees  bool // on any path
	Paths []PathReport
}

// why explains the state of a node to users. The text contains no elapsed time: it
// is stored, and must change only when the state does. members is the size of the
// cluster.
func why(v Verdict, n *granted, members int) string {
	quiet := fmt.Sprintf("no heartbeat for %s or more", Silence)
	var blind, seeing []string
	for _, w := range v.Witnesses {
		if w.Sees {
			seeing = append(seeing, w.Name)
		} else {
			blind = append(blind, w.Name)
		}
	}
	switch {
	case v.State == Alive && n.Lost:
		return "declared lost; it is back and cleaning up"
	case v.State == Alive:
		return "heartbeats arrive"
	case v.State == Fenced && n.Lost:
		return "declared lost; " + quiet
	case v.State == Fenced:
		return quiet + "; its last lease has expired, so instances that can run elsewhere were stopped on it"
	case v.State == Suspect:
		reason := list(blind) + " reach it on no path"
		if n.vouched {
			reason = "an operator says that it is off"
		}
		return fmt.Sprintf("%s; %s. Its instances may start elsewhere %s after its last lease was granted", quiet, reason, Dead)
	case members <= Witnesses:
		return fmt.Sprintf("%s. With one other node left nobody can tell a dead node from a cut cable, so it is not declared dead by itself: if you know that it is off, run `basalt node remove %s`", quiet, n.Name)
	case len(blind) == 1 && len(seeing) > 0:
		return fmt.Sprintf("%s; only %s cannot reach it, %s can; it takes two that cannot", quiet, blind[0], list(seeing))
	case len(seeing) > 0:
		return fmt.Sprintf("%s, but %s can reach it", quiet, list(seeing))
	case len(blind) == 1:
		return fmt.Sprintf("%s; %s cannot reach it, and nobody else has looked; it takes two that cannot", quiet, blind[0])
	}
	return quiet + "; no other node has probed it yet"
}

func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
