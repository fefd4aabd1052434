package api

import (
	"strings"
	"time"
)

// Limits of an instance's history. They are part of the state machine, so all nodes
// must have the same values.
const (
	MaxHistory     = 64  // changes kept per instance
	maxHistoryNote = 512 // bytes
)

// HistoryOf returns the history entry for one change of an instance: its user requested
// an operation (asked, or empty), or its state, the state's reason or its node changed.
// It returns nil if the change is not visible to the user. Without causes, it is that of
// clusters in which not all nodes know them.
func HistoryOf(before *Object, change Event, asked string, at time.Time, causes bool) *InstanceEvent {
	if change.Object.Kind != KindInstance || change.Type != EventPut {
		return nil
	}
	e := seenOf(change.Object, causes)
	if before != nil && asked == "" && seenOf(*before, causes) == e {
		return nil
	}
	e.Revision, e.At, e.Operation = change.Revision, at.UTC(), asked
	return &e
}

// seenOf returns the part of an instance that its user sees.
func seenOf(o Object, causes bool) InstanceEvent {
	i, err := Decode[Instance](o)
	if err != nil {
		return InstanceEvent{State: string(InstancePending)} // only the cluster writes these documents, so a broken one has no history
	}
	e := InstanceEvent{State: string(InstancePhaseOf(i)), Node: i.Assignment.Node, Message: i.Status.LastError, Cause: i.Status.Cause}
	if e.Message == "" && i.Assignment.Hold != "" {
		e.Message, e.Cause = PlainReason(i.Assignment.Hold, CauseSuspended, "").Parts()
	}
	if e.Message == "" && (i.Assignment.Node == "" || i.Assignment.NodeLost) {
		e.Message, e.Cause = i.Assignment.Reason, i.Assignment.Cause
	}
	if e.Message == "" || !causes {
		e.Cause = Cause{}
	}
	if len(e.Message) > maxHistoryNote {
		e.Message = strings.ToValidUTF8(e.Message[:maxHistoryNote], "")
	}
	return e
}
