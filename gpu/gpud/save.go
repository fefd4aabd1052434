package gpud

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// stateVersion is the version of the file's format; gpud refuses a newer one.
const stateVersion = 1

const stateFile = "state.json"

// stored is the state file. It is one document that is replaced atomically, so
// usage and the counters of the sessions that caused it always agree: nothing is
// counted twice, whenever gpud is killed.
type stored struct {
	Version int                          `json:"version"`
	Final   bool                         `json:"final,omitempty"` // nothing happened after it: gpud was shut down cleanly
	Boot    string                       `json:"boot"`
	At      sched.Time                   `json:"at"` // nanoseconds since the machine started
	Cards   map[sched.GPUID]uuid         `json:"cards"`
	Told    map[sched.GPUID]wire.GPUSpec `json:"told,omitempty"`
	Swaps   map[sched.GPUID]uint64       `json:"swaps,omitempty"` // bytes; written by an older gpud instead of Told
	VGPUs   []storedVGPU                 `json:"vgpus"`
}

type storedVGPU struct {
	ID        sched.VGPUID    `json:"id"`
	Spec      wire.VGPUSpec   `json:"spec"`
	UUID      uuid            `json:"uuid"`
	Token     string          `json:"token"`
	Usage     usage           `json:"usage"`
	Deleted   bool            `json:"deleted,omitempty"`
	DeletedAt sched.Time      `json:"deletedAt,omitempty"`
	Sessions  []storedSession `json:"sessions,omitempty"`
	Shares    []storedShare   `json:"shares,omitempty"`
}

type storedSession struct {
	ID      string       `json:"id"`
	State   sessionState `json:"state"`
	Changed sched.Time   `json:"changed"`
	PID     uint32       `json:"pid"`
	Name    string       `json:"name"`
	Held    uint64       `json:"held"`
	Settled sched.Time   `json:"settled"`
	Counter counter      `json:"counter"`
	Host    process      `json:"host"`
	Swapped uint64       `json:"swapped,omitempty"`
	Peak    uint64       `json:"peak,omitempty"`
}

// saving is the core's side of the saver. One write is in progress at a time;
// changes made in the meantime go into the next.
type saving struct {
	dirty   bool
	final   bool // the core has ended
	last    sched.Time
	busy    bool
	waiters []func(error) // for the next write
	flying  []func(error) // for the one in progress
	usages  map[sched.VGPUID]wire.Usage
	work    chan []byte
	done    chan error
}

func (s *saving) start(c *core) {
	s.work, s.done = make(chan []byte), make(chan error, 1)
	go func() {
		for b := range s.work {
			s.done <- atomicfile.WriteFile(filepath.Join(c.cfg.StateDir, stateFile), b, 0o600)
		}
		close(s.done)
	}()
	c.kick()
}

// stop waits for the write in progress and writes once more.
func (s *saving) stop(c *core) {
	s.final = true
	if s.busy {
		c.saved(<-s.done)
	}
	if !s.busy {
		s.dirty = true
		c.kick()
	}
	for s.busy {
		c.saved(<-s.done)
	}
	close(s.work)
}

// durable calls f when everything up to now is on disk, or with the error if it
// cannot be written.
func (c *core) durable(f func(error)) {
	if !c.save.dirty && !c.save.busy {
		f(nil)
		return
	}
	c.save.waiters = append(c.save.waiters, f)
	c.kick()
}

// kick starts a write unless one is in progress.
func (c *core) kick() {
	if c.save.busy || c.save.work == nil || !c.save.dirty && len(c.save.waiters) == 0 {
		return
	}
	at := now()
	doc := c.snapshot(at)
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err) // our structs can always be encoded
	}
	c.save.usages = map[sched.VGPUID]wire.Usage{}
	for _, v := range doc.VGPUs {
		c.save.usages[v.ID] = v.Usage.wire()
	}
	c.save.flying, c.save.waiters = c.save.waiters, nil
	c.save.dirty, c.save.busy, c.save.last = false, true, at
	c.save.work <- b
}

// saved handles the end of a write.
func (c *core) saved(err error) {
	c.save.busy = false
	if err != nil {
		c.save.dirty = true // the next tick tries again
		if c.problem == "" {
			c.cfg.Log.Error("write state failed, usage since the last write is lost in a crash", "error", err)
		}
		c.problem = fmt.Sprintf("write state: %v", err)
	} else {
		c.problem = ""
		for id, u := range c.save.usages {
			if v := c.vgpus[id]; v != nil {
				v.durable = u
			}
		}
	}
	flying := c.save.flying
	c.save.flying = nil
	for _, f := range flying {
		f(err)
	}
	if len(c.save.waiters) > 0 {
		c.kick()
	}
}

func (c *core) snapshot(at sched.Time) stored {
	c.settle(at)
	doc := stored{Version: stateVersion, Final: c.save.final, Boot: bootID(), At: at, Cards: c.uuids, Told: c.specs}
	for _, v := range c.vgpus {
		out := storedVGPU{ID: v.id, Spec: v.spec, UUID: v.uuid, Token: v.token, Usage: v.usage, Deleted: v.deleted, DeletedAt: v.deletedAt, Shares: v.storedShares()}
		for _, s := range v.sessions {
			counter := s.counter
			if card := c.cards[v.on()]; card != nil && s.state == live {
				counter.Leased += card.leases.Holding(at, s.key())
			}
			settled := s.settled
			if s.state == live {
				settled = at
			}
			out.Sessions = append(out.Sessions, storedSession{
				ID: s.id, State: s.state, Changed: s.changed, PID: s.pid, Name: s.name,
				Held: s.held, Settled: settled, Counter: counter, Host: s.host, Swapped: s.presence.swapped, Peak: s.peak,
			})
		}
		doc.VGPUs = append(doc.VGPUs, out)
	}
	return doc
}

// load reads the state of an earlier gpud. Its workers are expected to reconnect.
func (c *core) load() error {
	path := filepath.Join(c.cfg.StateDir, stateFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var doc stored
	if err := json.Unmarshal(b, &doc); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if doc.Version < 1 || doc.Version > stateVersion {
		return fmt.Errorf("%s has version %d, this gpud supports up to %d", path, doc.Version, stateVersion)
	}
	if doc.Cards != nil {
		c.uuids = doc.Cards
	}
	if doc.Told != nil {
		c.specs = doc.Told
	}
	for id, bytes := range doc.Swaps {
		c.specs[id] = wire.GPUSpec{SwapBytes: bytes}
	}
	// After a reboot no worker is alive, and times of the previous boot are
	// meaningless.
	same := doc.Boot != "" && doc.Boot == bootID() && doc.At <= c.started
	for _, in := range doc.VGPUs {
		v := &vgpu{
			id: in.ID, spec: in.Spec, uuid: in.UUID, token: in.Token, usage: in.Usage, durable: in.Usage.wire(),
			deleted: in.Deleted, deletedAt: in.DeletedAt, sessions: map[string]*session{}, shares: map[string]*share{},
		}
		if v.token == "" { // written by a gpud without tokens
			v.token = newToken()
		}
		if !same {
			v.deletedAt = c.started
		}
		for _, s := range in.Sessions {
			if !same {
				break
			}
			if s.State == live {
				s.State = detached
			}
			v.sessions[s.ID] = &session{
				id: s.ID, vgpu: v, state: s.State, changed: s.Changed, pid: s.PID, name: s.Name,
				held: s.Held, peak: s.Peak, settled: s.Settled, counter: s.Counter, host: s.Host,
				presence: presence{swapped: s.Swapped}, account: account{stale: !doc.Final},
			}
		}
		v.loadShares(in.Shares)
		c.vgpus[v.id] = v
	}
	return nil
}

// lockDir locks the state directory for this gpud. The lock ends with the process.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("another gpud is running on %s", dir)
	}
	return f, nil
}
