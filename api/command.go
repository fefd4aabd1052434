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
	OpAssign  Op = 2 // the planner: Assignment
	OpReport  Op = 3 // the owning agent: Status; creates what nobody asks for (Reported)
	OpDelete  Op = 4 // marks deletedAt; an object without finalizers goes at once
	OpForget  Op = 5 // takes Finalizer off; the last one off a deleted object removes it
	OpRecord  Op = 6 // notes a UsageRecord, which is no object; the same again changes nothing
	OpExpire  Op = 7 // lets go of old UsageRecords (ExpireRecords)
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
	// Expect is the revision that the object must have; 0: it must not exist.
	Expect int64 `json:"expect,omitempty"`
	// Name, Organization, Project, Labels, Finalizers: OpPutSpec, OpReport that creates;
	// Organization and Project: OpRecord, and Organization: OpExpire.
	Name         string            `json:"name,omitempty"`
	Organization string            `json:"organization,omitempty"`
	Project      string            `json:"project,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Finalizers   []string          `json:"finalizers,omitempty"`
	Finalizer    string            `json:"finalizer,omitempty"` // OpForget
	// Claims are the names that the object holds from now on, none of which
	// another object may hold (OpPutSpec, OpAssign). Nil: as before; empty, not
	// nil: none. What is removed lets go.
	Claims []string `json:"claims,omitzero"`
	// Uses is what the object takes of each quota from now on, of its project's
	// and its organization's (OpPutSpec). Nil: as before. What is removed gives
	// it back.
	Uses Amounts `json:"uses,omitzero"`
	// Limits are the quotas of an organization or a project: what the objects
	// in it may take together (OpPutSpec). Nil: as before.
	Limits Amounts `json:"limits,omitzero"`
	// Used is the use of the organization when somebody decided to delete it, or to
	// change how it pays: the command is refused if there is more by now (OpDelete,
	// OpPutSpec of an organization).
	Used *UseMark `json:"used,omitempty"`
	// Raise is an event for webhooks, kept if the command changes the object.
	Raise *Raise `json:"raise,omitempty"`
	// Cascade deletes also what others refer to: they follow (OpDelete).
	Cascade bool `json:"cascade,omitempty"`
	// Data is the Spec, Assignment or Status.
	Data json.RawMessage `json:"data,omitempty"`
}

// Reported reports whether objects of the kind are made by OpReport: nobody asks
// for them, their agents find them.
func Reported(k Kind) bool {
	return k == KindNode || k == KindGPU || k == KindDisk || k == KindChassis
}

// CheckClaims returns what is wrong with a command's claims, or nothing.
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

// Claimed returns the refusal of a claim to a name that another object has. Whose it
// is, is only for those who may know.
func Claimed(name string, by ObjectRef) *Error {
	e := Errorf(CodeConflict, "%s is already claimed", name).WithHint("choose a different value, or delete that object")
	e.By = &by
	return e
}

// Batch is one log entry: all of its commands apply, or none.
type Batch struct {
	// ID makes a retry harmless: the store remembers recent IDs and answers
	// the same again. Empty: no memory.
	ID       string    `json:"id,omitempty"`
	At       time.Time `json:"at"` // the FSM's only clock
	Commands []Command `json:"commands"`
	// Audit describes who asked; nil: the cluster itself, of which the audit trail
	// says nothing.
	Audit *AuditNote `json:"audit,omitempty"`
	// Strict refuses the batch if an object that it makes or changes would begin
	// to refer (References) to one that is not there or is being deleted. An API
	// server's batches are strict. What the cluster does by itself must not be
	// held up by what somebody deletes meanwhile, and mends it later.
	Strict bool `json:"strict,omitempty"`
}

// Event is one change, as a watch delivers it.
type Event struct {
	Revision int64     `json:"revision"`
	Type     EventType `json:"type"`
	Object   Object    `json:"object"` // as it is after the change; for a removal, as it was
}

// EventType of a change.
type EventType string

// Event types. Sync ends the snapshot with which a watch from revision 0, or
// from one too old, begins: objects not seen in it are gone.
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
