package api

import (
	"cmp"
	"strings"
	"time"
)

// Bounds of an instance's history. They belong to the state machine: all nodes
// must have the same.
const (
	MaxHistory     = 64  // changes that are kept of each instance
	maxHistoryNote = 512 // bytes
)

// HistoryOf is what an instance's history has of one change: that its user asked
// for it (asked is the operation, or empty), or that its state, the reason for
// it or its node is another than before. nil: nothing that he would see.
func HistoryOf(before *Object, change Event, asked string, at time.Time) *InstanceEvent {
	if change.Object.Kind != KindInstance || change.Type != EventPut {
		return nil
	}
	e := seenOf(change.Object)
	if before != nil && asked == "" && seenOf(*before) == e {
		return nil
	}
	e.Revision, e.At, e.Operation = change.Revision, at.UTC(), asked
	return &e
}

// seenOf is how an instance looks to its user.
func seenOf(o Object) InstanceEvent {
	i, err := Decode[Instance](o)
	if err != nil {
		return InstanceEvent{State: string(InstancePending)} // specs and reports are our own: one that is broken says nothing
	}
	e := InstanceEvent{State: string(InstancePhaseOf(i)), Node: i.Assignment.Node, Message: cmp.Or(i.Status.LastError, i.Assignment.Hold)}
	if e.Message == "" && (i.Assignment.Node == "" || i.Assignment.NodeLost) {
		e.Message = i.Assignment.Reason
	}
	if len(e.Message) > maxHistoryNote {
		e.Message = strings.ToValidUTF8(e.Message[:maxHistoryNote], "")
	}
	return e
}
