// Package histtest checks the results that clients of a store observed: every operation
// is recorded with the time of its call and of its return, and afterwards the checker
// searches for a sequence of all of them that explains every answer and in which an
// operation that returned before another began comes before it. If there is none, the
// store lost or reordered something that it had acknowledged.
//
//	r := histtest.New()
//	p := r.Call(client, histtest.Op{Kind: histtest.Update, Object: id, Expect: rev, Value: v})
//	… call the store …
//	p.Return(histtest.Result{Revision: rev}) // or p.Fail(err)
//	r.Check(t)
//
// Objects are registers that may not exist. Values must be unique, one for each write.
// A List is a read of every object that occurs in the recorder's history, including
// those that it shows not to exist.
package histtest

import (
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// OpKind is the type of an operation.
type OpKind string

// The operations.
const (
	Create OpKind = "create" // the object must not exist
	Update OpKind = "update" // the object must have the revision Expect
	Delete OpKind = "delete" // the object must have the revision Expect, or api.AnyRevision
	Get    OpKind = "get"
	List   OpKind = "list" // of all objects, not just one page
)

// Op is one operation.
type Op struct {
	Kind   OpKind
	Object string // empty for List
	Expect int64  // Update and Delete
	Value  string // Create and Update: unique in the history
}

// Version is an object at one revision.
type Version struct {
	Revision int64
	Value    string
}

// Result is the answer of an operation that succeeded.
type Result struct {
	Version                    // Create and Update: its Revision; Get: both fields
	Items   map[string]Version // List
	Store   int64              // List: the store's revision, 0 if unknown
}

// Recorder collects a history. Its methods may be called concurrently.
type Recorder struct {
	Drawings string // folder for drawings of histories without an explanation; empty means os.TempDir()

	start time.Time

	mu      sync.Mutex // guards the fields below
	history []*Pending
}

// New returns an empty history.
func New() *Recorder { return &Recorder{start: time.Now()} }

// Pending is an operation. One that never returns may have happened or not, at any time
// after its call.
type Pending struct {
	r        *Recorder
	client   int
	op       Op
	call     int64 // nanoseconds since the start
	returned int64
	outcome  outcome
	result   Result
}

// Call records that client begins an operation. A client runs one at a time.
func (r *Recorder) Call(client int, op Op) *Pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &Pending{r: r, client: client, op: op, outcome: unknown, call: time.Since(r.start).Nanoseconds()}
	r.history = append(r.history, p)
	return p
}

// Return records success.
func (p *Pending) Return(res Result) { p.end(succeeded, res) }

// Fail records an error. Refusals are answers; after any other error the outcome is
// unknown.
func (p *Pending) Fail(err error) {
	switch api.CodeOf(err) {
	case api.CodeExists:
		p.end(exists, Result{})
	case api.CodeConflict:
		p.end(conflict, Result{})
	case api.CodeNotFound:
		p.end(notFound, Result{})
	}
}

func (p *Pending) end(o outcome, res Result) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.returned, p.outcome, p.result = time.Since(p.r.start).Nanoseconds(), o, res
}

// Counts returns how many operations succeeded, were refused, and have an unknown
// outcome.
func (r *Recorder) Counts() (done, refused, open int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.history {
		switch p.outcome {
		case succeeded:
			done++
		case unknown:
			open++
		default:
			refused++
		}
	}
	return done, refused, open
}
