// Package histtest checks what clients of a store saw of it: every operation
// is recorded with the time of its call and of its return, and afterwards a
// sequence of all of them is sought that explains every answer and in which an
// operation that returned before another began comes before it. If there is
// none, the store lost, forgot or reordered something that it had promised.
//
//	r := histtest.New()
//	p := r.Call(client, histtest.Op{Kind: histtest.Update, Object: id, Expect: rev, Value: v})
//	… ask the store …
//	p.Return(histtest.Result{Revision: rev}) // or p.Fail(err)
//	r.Check(t)
//
// Objects are registers that may not exist. Values must be unique, one for
// each write; object ids are the recorder's universe: a List says of every
// object that was ever named what it is or that it is not there.
package histtest

import (
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// OpKind is what an operation does.
type OpKind string

// The operations.
const (
	Create OpKind = "create" // the object must not exist
	Update OpKind = "update" // the object must have the revision Expect
	Delete OpKind = "delete" // the object must have the revision Expect, or api.AnyRevision
	Get    OpKind = "get"
	List   OpKind = "list" // of all objects; a page of it is not one
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
	Version                    // Create, Update: its Revision; Get: both
	Items   map[string]Version // List
	Store   int64              // List: the store's revision, 0 if not told
}

// Recorder collects a history. Its methods may be called from any goroutine.
type Recorder struct {
	Drawings string // folder for drawings of what cannot be explained; empty: os.TempDir()

	start time.Time

	mu      sync.Mutex // guards what is below
	history []*Pending
}

// New is an empty history.
func New() *Recorder { return &Recorder{start: time.Now()} }

// Pending is an operation; one that never returns may have happened or not, at
// any time after its call.
type Pending struct {
	r        *Recorder
	client   int
	op       Op
	call     int64 // nanoseconds since the start
	returned int64
	outcome  outcome
	result   Result
}

// Call records that client begins an operation. A client does one at a time.
func (r *Recorder) Call(client int, op Op) *Pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &Pending{r: r, client: client, op: op, outcome: unknown, call: time.Since(r.start).Nanoseconds()}
	r.history = append(r.history, p)
	return p
}

// Return records success.
func (p *Pending) Return(res Result) { p.end(succeeded, res) }

// Fail records an error. Refusals are answers; of all other errors nobody
// knows whether the operation was done.
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

// Counts are the operations that succeeded, that were refused, and of which
// nobody knows.
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
