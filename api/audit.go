package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// AuditNote describes who requested a batch. The state machine turns it into an audit
// event when it has applied the batch.
type AuditNote struct {
	Actor     string `json:"actor"` // id of the key or session
	Name      string `json:"name,omitempty"`
	Role      Role   `json:"role,omitempty"`
	From      string `json:"from,omitempty"` // address of the client
	Operation string `json:"operation"`      // operationId
}

// MaxAuditObjects is how many changed objects an event names; More counts the rest.
const MaxAuditObjects = 32

// auditStart is hashed in place of a predecessor for the first event.
const auditStart = "basalt audit trail"

// Chain returns the event with its hash, chained to the event whose hash is previous
// (empty for the first event). The hash is SHA-256 over previous and the event's JSON
// with an empty hash and no seal, so that no event can be changed, inserted or removed
// without changing all later ones.
func (e AuditEvent) Chain(previous string) AuditEvent {
	if previous == "" {
		sum := sha256.Sum256([]byte(auditStart))
		previous = hex.EncodeToString(sum[:])
	}
	e.Previous, e.Hash, e.Seal = previous, "", ""
	raw, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings, integers and a time
	}
	sum := sha256.Sum256(append([]byte(previous), raw...))
	e.Hash = hex.EncodeToString(sum[:])
	return e
}

// Follows reports whether the event is unchanged and directly follows the event before.
// The zero event precedes the first one.
func (e AuditEvent) Follows(before AuditEvent) bool {
	is := e.Chain(before.Hash)
	return e.Seq == before.Seq+1 && e.Previous == is.Previous && e.Hash == is.Hash
}

// AuditQuery selects events.
type AuditQuery struct {
	Organization string // whose objects were changed; empty: any
	After        int64  // Last of the page before
	Newest       bool   // newest first; After 0 then starts at the end
	Limit        int    // 1 to 1000
	Only         AuditFilter
}

// MaxAuditScan is how many events one page examines when a filter matches only a few.
const MaxAuditScan = 1000

// AuditPage is one page of events; More reports whether another page follows. With a
// filter a page may have fewer items than the limit, or none, although another page
// follows.
type AuditPage struct {
	Items []AuditEvent
	Last  int64 // seq of the last event examined; 0: none
	More  bool
}

// AuditFilter matches the events that meet all of its conditions; an empty field
// matches any event.
type AuditFilter struct {
	Actor     string // id or name of who asked
	Operation string // operationId
	Kind      Kind   // of one of the event's objects
	Object    string // id or name of one of its objects, the same one if Kind is given
	Removed   bool   // whether that object was removed by the event
	From, To  time.Time
}

// Wants reports whether the filter matches an event. Case is ignored except in IDs.
// Objects that an event counts but does not name are not matched.
func (f AuditFilter) Wants(e AuditEvent) bool {
	if f.Actor != "" && e.Actor != f.Actor && !strings.EqualFold(e.Name, f.Actor) ||
		f.Operation != "" && !strings.EqualFold(e.Operation, f.Operation) ||
		!f.From.IsZero() && e.At.Before(f.From) || !f.To.IsZero() && !e.At.Before(f.To) {
		return false
	}
	if f.Kind == "" && f.Object == "" && !f.Removed {
		return true
	}
	return slices.ContainsFunc(e.Objects, func(o AuditObject) bool {
		return (f.Kind == "" || strings.EqualFold(string(o.Kind), string(f.Kind))) &&
			(f.Object == "" || o.ID == f.Object || strings.EqualFold(o.Name, f.Object)) && (!f.Removed || o.Removed)
	})
}

// BillingNote returns the note of a change that the cluster makes for billing and that
// an operator must be able to find in the audit log.
func BillingNote(operation string) *AuditNote {
	return &AuditNote{Actor: string(RoleBilling), Name: string(RoleBilling), Role: RoleBilling, Operation: operation}
}
