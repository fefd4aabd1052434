package simulation

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// Options are the options of a run. Every field with its zero value, but Seed and Dir, is drawn
// or left out.
type Options struct {
	Seed  uint64
	Dir   string // an empty, writable directory for the nodes' files
	Nodes int
	Storm time.Duration // how long faults occur
	Bug   InjectedBug
	// Shared gives every node the shared pool.
	Shared bool
	// Attach has tenants create data volumes, attach and detach them.
	Attach bool
	// Skip reports whether to leave out the fault or action of number i.
	Skip func(i int) bool
	Tail int // number of trace lines to keep, 0: 200
}

// Result is the result of a run.
type Result struct {
	Err   error    // the first invariant or condition that was violated; nil: none
	Trace []string // its last lines
	Hash  uint64   // of every event, in order
	Stats Stats
	Plan  []string // faults and actions, by number
}

// Stats counts what happened in a run.
type Stats struct {
	Events, Commits, Faults, Actions int
	Starts, Kills, Resets, Lost      int
	Elections, Migrations, Moved     int
	Copies, Copied                   int // of volumes to other nodes: begun, finished
	CopiedData                       int // of those finished, data volumes
	Attached                         int // how often an instance opened a data volume
	Hurt, Refused, Rebuilt           int // stores
	Differing, Upgraded, Raised      int // nodes whose tables differed, nodes with a new release, feature levels
	Full                             int // disks of stores
	Virtual                          time.Duration
}

// epoch is the start of virtual time, by a correct wall clock.
var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is the state of the whole simulation.
type world struct {
	open  map[string]string // by data volume: the instance and node that have it open
	o     Options
	rng   *rand.Rand
	now   time.Duration
	seq   uint64
	queue events
	cur   *thread // the running thread; nil: in an event without one
	hash  hash.Hash64
	trace []string
	err   error
	stats Stats

	raft   raft
	all    *objects.Set
	truth  *plan.State // a view of all, which holds every committed object
	nodes  []*machine
	shared *sdsfake.Store
	net    network
	disks  *disks
	bill   *bill
	acts   *actions
	calm   bool // all faults are healed and no new ones occur

	states   map[string]api.NodeState
	assigned map[api.InstanceID]api.InstanceAssignment
	ended    map[api.InstanceID]bool // by their guests, or by a crash
}

type event struct {
	at   time.Duration
	seq  uint64
	name string
	f    func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

// after schedules f as an event in d.
func (w *world) after(d time.Duration, name string, f func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + max(d, 0), w.seq, name, f})
}

// every schedules f as an event every d until it returns false.
func (w *world) every(d time.Duration, name string, f func() bool) {
	w.after(d, name, func() {
		if f() {
			w.every(d, name, f)
		}
	})
}

// run processes the queue until the given time, or until the run has failed.
func (w *world) run(until time.Duration) {
	var buf [16]byte
	for w.err == nil && len(w.queue) > 0 && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		w.stats.Events++
		binary.LittleEndian.PutUint64(buf[:], uint64(e.at))
		_, _ = w.hash.Write(buf[:8])
		_, _ = w.hash.Write([]byte(e.name))
		e.f()
		w.settle()
	}
	if w.err == nil {
		w.now = max(w.now, until)
	}
}

// settle runs after every event: it forwards the hypervisors' events and checks the invariants.
func (w *world) settle() {
	for _, m := range w.nodes {
		m.forwardEvents()
	}
	w.check()
}

// logf adds a line to the trace and to the hash.
func (w *world) logf(who, format string, args ...any) {
	line := fmt.Sprintf("%9.3fs %-8s ", w.now.Seconds(), who) + fmt.Sprintf(format, args...)
	_, _ = w.hash.Write([]byte(line))
	if w.trace = append(w.trace, line); len(w.trace) > 2*w.o.Tail {
		w.trace = append(w.trace[:0], w.trace[len(w.trace)-w.o.Tail:]...)
	}
}

// failf records the first failure, which ends the run.
func (w *world) failf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
		w.logf("BROKEN", "%v", w.err)
	}
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

// between returns a duration between a and b, uniformly distributed.
func (w *world) between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

func (w *world) machine(id api.NodeID) *machine {
	for _, m := range w.nodes {
		if m.id == id {
			return m
		}
	}
	return nil
}

// Run runs one seed.
func Run(o Options) Result {
	w := newWorld(o)
	plans := w.build()
	defer w.close()
	w.run(w.o.Storm)
	if w.err == nil {
		w.rest()
	}
	w.stats.Virtual = w.now
	t := w.trace[max(0, len(w.trace)-w.o.Tail):]
	return Result{Err: w.err, Trace: t, Hash: w.hash.Sum64(), Stats: w.stats, Plan: plans}
}

func newWorld(o Options) *world {
	if o.Tail == 0 {
		o.Tail = 200
	}
	all := objects.NewSet(plan.Kinds...)
	return &world{o: o, rng: rand.New(rand.NewPCG(o.Seed, 0x5eed)), hash: fnv.New64a(), all: all, truth: plan.StateOf(all)}
}

// close ends every thread.
func (w *world) close() {
	for _, m := range w.nodes {
		if m.proc != nil {
			m.proc.die()
		}
		_ = os.RemoveAll(m.storeDir()) // the stores of many seeds would need much space
	}
	w.acts.stop()
}

func (m *machine) dir(name string) string {
	d := filepath.Join(m.w.o.Dir, string(m.id), name)
	if err := os.MkdirAll(d, 0o755); err != nil {
		m.w.failf("the simulation's own files: %v", err)
	}
	return d
}
