package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// AuditNote describes who asked for a batch. The state machine makes the event of it
// when the batch has taken effect.
type AuditNote struct {
	Actor     string `json:"actor"` // id of the key or session
	Name      string `json:"name,omitempty"`
	Role      Role   `json:"role,omitempty"`
	From      string `json:"from,omitempty"` // address of the client
	Operation string `json:"operation"`      // operationId
}

// MaxAuditObjects is how many changed objects an event names; More counts the rest.
const MaxAuditObjects = 32

// auditStart is what the first event follows.
const auditStart = "basalt audit trail"

// Chain gives the event its hash: it follows the one with the hash previous,
// empty for the first. The hash is SHA-256 over that one's and the event's own
// JSON with an empty hash and no seal, so that nobody changes, inserts or removes an event
// without changing all that follow.
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

// Follows reports whether the event stands as it was written, after the event
// before it; the zero one is before the first.
func (e AuditEvent) Follows(before AuditEvent) bool {
	is := e.Chain(before.Hash)
	return e.Seq == before.Seq+1 && e.Previous == is.Previous && e.Hash == is.Hash
}

// AuditQuery selects events.
type AuditQuery struct {
	Organization string // whose objects were changed; empty: any
	After        int64  // Last of the page before
	Newest       bool   // from the newest to the oldest; After 0 is the end then
	Limit        int    // 1 to 1000
	Only         AuditFilter
}

// MaxAuditScan is how many events one page looks at, when a filter leaves few.
const MaxAuditScan = 1000

// AuditPage is one page; More says that another follows. With a filter a page
// may have fewer items than the limit, or none, and another may follow.
type AuditPage struct {
	Items []AuditEvent
	Last  int64 // seq of the last event that was looked at; 0: of none
	More  bool
}

// AuditFilter leaves the events that have all of what it names; what is empty
// is not asked for.
type AuditFilter struct {
	Actor     string // id or name of who asked
	Operation string // operationId
	Kind      Kind   // of one of the event's objects
	Object    string // id or name of one of its objects, the same one if Kind is given
	Removed   bool   // that one is gone with the event
	From, To  time.Time
}

// Wants reports whether the filter leaves an event. Upper and lower case are one,
// but for ids. Objects that an event only counts are not found.
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

// BillingNote is the note of what the cluster does for money's sake, and an
// operator has to be able to find again.
func BillingNote(operation string) *AuditNote {
	return &AuditNote{Actor: string(RoleBilling), Name: string(RoleBilling), Role: RoleBilling, Operation: operation}
}
