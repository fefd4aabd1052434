package api

import (
	"encoding/json"
	"time"
)

// Op is a command's number in the log: append-only, never reused.
type Op uint8

// The commands. Each writes one part of an object.
const (
	OpPutSpec Op = 1 // creates, or changes Spec, name, labels: bumps generation
	OpAssign  Op = 2 // the planner writes Assignment
	OpReport  Op = 3 // the owning agent writes Status; creates objects of Reported kinds
	OpDelete  Op = 4 // sets deletedAt; an object without finalizers is removed at once
	OpForget  Op = 5 // removes Finalizer; an object marked deleted is removed with its last finalizer
	OpRecord  Op = 6 // records a UsageRecord, which is not an object; repeating it changes nothing
	OpExpire  Op = 7 // removes old UsageRecords (ExpireRecords)
)

// Limits of Command.Claims.
const (
	MaxClaims     = 64
	MaxClaimBytes = 128
)

// AnyRevision as Command.Expect skips the check.
const AnyRevision int64 = -1

// Command is one write.
type Command struct {
	Op   Op     `json:"op"`
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
	// Expect is the revision that the object must have; 0 means that it must not exist.
	Expect int64 `json:"expect,omitempty"`
	// Name, Organization, Project, Labels and Finalizers are for OpPutSpec and an
	// OpReport that creates; Organization and Project also for OpRecord, and
	// Organization for OpExpire.
	Name         string            `json:"name,omitempty"`
	Organization string            `json:"organization,omitempty"`
	Project      string            `json:"project,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Finalizers   []string          `json:"finalizers,omitempty"`
	Finalizer    string            `json:"finalizer,omitempty"` // OpForget
	// Claims are the names that the object holds from now on and that no other object
	// may hold (OpPutSpec, OpAssign). Nil leaves them unchanged; empty but not nil
	// releases them all. Removing an object releases its claims.
	Claims []string `json:"claims,omitzero"`
	// Uses is how much the object uses of each quota of its project and organization
	// (OpPutSpec). Nil leaves it unchanged. Removing an object releases its use.
	Uses Amounts `json:"uses,omitzero"`
	// Limits are the quotas of an organization or a project, which bound the total use
	// of the objects in it (OpPutSpec). Nil leaves them unchanged.
	Limits Amounts `json:"limits,omitzero"`
	// Used is the organization's use at the time of the decision to delete it or to
	// change its billing mode. The command is refused if the use has grown since
	// (OpDelete, OpPutSpec of an organization).
	Used *UseMark `json:"used,omitempty"`
	// Event is an event for webhooks, stored if the command changes the object.
	Event *CommandEvent `json:"raise,omitempty"`
	// Cascade allows deleting an object that others refer to; they are deleted
	// afterwards (OpDelete).
	Cascade bool `json:"cascade,omitempty"`
	// Data is the Spec, Assignment or Status.
	Data json.RawMessage `json:"data,omitempty"`
}

// Reported reports whether objects of the kind are created by OpReport: agents discover
// them, and no user requests them.
func Reported(k Kind) bool {
	return k == KindNode || k == KindGPU || k == KindDisk || k == KindChassis
}

// CheckClaims returns an error if a command's claims are invalid.
func CheckClaims(c Command) error {
	switch {
	case c.Claims == nil:
		return nil
	case c.Op != OpPutSpec && c.Op != OpAssign:
		return invalid("claims", "only a command that writes a spec or an assignment may have claims")
	case len(c.Claims) > MaxClaims:
		return Errorf(CodeTooLarge, "%s %s has %d claims, want at most %d", c.Kind, c.ID, len(c.Claims), MaxClaims)
	}
	for _, name := range c.Claims {
		if name == "" || len(name) > MaxClaimBytes || hasControl(name) {
			return invalid("claims", "%q is not a valid name to claim", clip(name)).WithHint("must have 1 to %d bytes", MaxClaimBytes)
		}
	}
	return nil
}

// Claimed returns the error for claiming a name that another object holds. The holder
// is in By and is shown only to those who may read it.
func Claimed(name string, by ObjectRef) *Error {
	e := Errorf(CodeConflict, "%s is already claimed", name).WithHint("choose a different value, or delete that object")
	e.By = &by
	return e
}

// Batch is one log entry: all of its commands apply, or none.
type Batch struct {
	// ID makes a retry harmless: the store remembers recent IDs and returns the same
	// answer again. Empty disables this.
	ID       string    `json:"id,omitempty"`
	At       time.Time `json:"at"` // the FSM's only clock
	Commands []Command `json:"commands"`
	// Audit describes who requested the batch. Nil means the cluster itself, whose
	// batches are not in the audit trail.
	Audit *AuditNote `json:"audit,omitempty"`
	// Strict refuses the batch if an object that it creates or changes would gain a
	// reference (References) to an object that does not exist or is being deleted. API
	// servers send strict batches. The cluster's own batches are not strict: a
	// concurrent deletion must not block them, and the cluster repairs the reference
	// later.
	Strict bool `json:"strict,omitempty"`
}

// Event is one change, in the form that a watch delivers.
type Event struct {
	Revision int64     `json:"revision"`
	Type     EventType `json:"type"`
	Object   Object    `json:"object"` // as it is after the change; for a removal, its last state
}

// EventType is the type of a change.
type EventType string

// Event types. Sync ends the initial snapshot of a watch from revision 0, or from a
// revision that is too old; objects that were not in the snapshot no longer exist.
const (
	EventPut    EventType = "put"
	EventRemove EventType = "remove"
	EventSync   EventType = "sync"
)

// ListPage is one page. Continue is empty on the last.
type ListPage struct {
	Items    []Object
	Continue string
	Revision int64 // of the store when the page was read
}
