package fence

import (
	"fmt"
	"slices"
	"time"
)

const (
	// Scan is the time between sweeps without a lease; calmScan when nothing has
	// been found for a while: every sweep reads all of /proc.
	Scan      = 200 * time.Millisecond
	calmScan  = time.Second
	calmAfter = 15 * time.Second
	// DefaultGrace is how long killing may take before the watchdog is left
	// to run out. The cluster's guard time holds it.
	DefaultGrace = 3 * time.Second

	feedEvery = time.Second
	maxKilled = 256
)

// machine is the state machine of the package comment. Time is CLOCK_BOOTTIME
// and comes in; the loop carries out what it says.
type machine struct {
	grace  time.Duration
	armed  bool // not stood down
	lease  Lease
	keep   map[string]bool
	sweep  time.Duration // start of the sweep under way; 0: none
	next   time.Duration // start of the next sweep, not before
	clean  time.Duration // start of the last sweep that found nothing left
	caught time.Duration // when one last found somebody, or failed
	killed []Killed      // gone
	dying  []Killed
	failed string // why the last sweep was not clean
}

// mode at a moment.
func (m *machine) mode(now time.Duration) Mode {
	switch {
	case !m.armed:
		return Idle
	case now < m.lease.Until:
		return Holding
	}
	return Fencing
}

// setLease takes a new deadline.
func (m *machine) setLease(now time.Duration, l Lease) error {
	if l.Until > now+maxLease {
		return fmt.Errorf("lease of %s is too long: want at most %s", (l.Until - now).Round(time.Second), maxLease)
	}
	if l.Until <= now {
		// Ended early: the grace counts from now, not from when it would
		// have ended.
		l.Until = min(m.lease.Until, now)
	}
	m.armed, m.lease = true, l
	return nil
}

func (m *machine) setKeep(ids []string) {
	m.keep = make(map[string]bool, len(ids))
	for _, id := range ids {
		m.keep[id] = true
	}
}

// standDown ends it all: the lease too, so that being armed again means a new
// one.
func (m *machine) standDown() {
	m.armed, m.lease = false, Lease{}
}

// sweepDue reports whether to begin a sweep, and notes that it began.
func (m *machine) sweepDue(now time.Duration) bool {
	// Those that were killed are followed to their end in any mode.
	if m.mode(now) != Fencing && len(m.dying) == 0 || m.sweep != 0 || now < m.next {
		return false
	}
	m.sweep, m.next = now, now+m.pace(now)
	return true
}

// pace of sweeps. The grace has room for three of them.
func (m *machine) pace(now time.Duration) time.Duration {
	if now < max(m.lease.Until, m.caught)+calmAfter {
		return Scan
	}
	return max(Scan, min(calmScan, m.grace/3))
}

// swept takes a sweep's result.
func (m *machine) swept(now time.Duration, r SweepResult) {
	began := m.sweep
	m.sweep = 0
	for _, v := range r.Gone {
		v.At = now
		m.killed = append(m.killed, v)
	}
	if n := len(m.killed); n > maxKilled {
		m.killed = slices.Clone(m.killed[n-maxKilled:])
	}
	if len(r.Gone)+len(r.Dying) > 0 || r.Err != nil {
		m.caught, m.next = now, min(m.next, now+Scan)
	}
	m.dying, m.failed = r.Dying, ""
	switch {
	case r.Err != nil:
		m.failed = r.Err.Error()
	case len(r.Dying) > 0:
		m.failed = fmt.Sprintf("%d killed processes have not exited", len(r.Dying))
	default:
		m.clean = began
	}
}

// feed reports whether the watchdog may be fed: under a lease, or when everything
// was seen to be gone, or its killing has only just begun.
func (m *machine) feed(now time.Duration) bool {
	switch m.mode(now) {
	case Holding:
		return true
	case Fencing:
		return now < max(m.clean, m.lease.Until)+m.grace
	}
	return false
}

// spare says whom a sweep leaves alone. It is asked from the reaper's goroutine,
// so it is a value of its own.
type spare struct {
	armed bool
	until time.Duration
	keep  map[string]bool
}

func (s spare) instance(now time.Duration, id string) bool {
	return !s.armed || now < s.until || s.keep[id]
}

// wake is when to look again at the latest, when nothing else happens.
func (m *machine) wake(now time.Duration) time.Duration {
	wait := time.Hour
	switch m.mode(now) {
	case Holding:
		// Not all of it: the timer stands still while the machine sleeps, and
		// the deadline does not.
		wait = min(m.lease.Until-now, feedEvery)
	case Fencing:
		wait = feedEvery
	}
	if m.sweep == 0 && (m.mode(now) == Fencing || len(m.dying) > 0) {
		wait = min(wait, m.next-now)
	}
	return max(wait, 0)
}
