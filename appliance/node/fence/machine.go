package fence

import (
	"fmt"
	"slices"
	"time"
)

const (
	// Scan is the interval of sweeps without a lease. calmScan is the interval when
	// nothing has been found for calmAfter, because every sweep reads all of /proc.
	Scan      = 200 * time.Millisecond
	calmScan  = time.Second
	calmAfter = 15 * time.Second
	// DefaultGrace is how long killing may take before the watchdog is no longer
	// fed. It is part of the cluster's guard time.
	DefaultGrace = 3 * time.Second

	feedEvery = time.Second
	maxKilled = 256
)

// machine is the state machine of the package comment. Times are CLOCK_BOOTTIME and
// are passed in; the loop carries out its decisions.
type machine struct {
	grace  time.Duration
	armed  bool // not stood down
	lease  Lease
	keep   map[string]bool
	sweep  time.Duration // start of the sweep in progress; 0 if none
	next   time.Duration // earliest start of the next sweep
	clean  time.Duration // start of the last sweep that found nothing left
	caught time.Duration // when a sweep last found a process, or failed
	killed []Killed      // have ended
	dying  []Killed
	failed string // why the last sweep was not clean
}

// mode returns the mode at the given time.
func (m *machine) mode(now time.Duration) Mode {
	switch {
	case !m.armed:
		return Idle
	case now < m.lease.Until:
		return Holding
	}
	return Fencing
}

// setLease sets a new deadline.
func (m *machine) setLease(now time.Duration, l Lease) error {
	if l.Until > now+maxLease {
		return fmt.Errorf("lease of %s is too long: want at most %s", (l.Until - now).Round(time.Second), maxLease)
	}
	if l.Until <= now {
		// The lease is ended early: the grace counts from now, not from its old
		// deadline.
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

// standDown disarms the machine and removes the lease, so that arming it again
// needs a new one.
func (m *machine) standDown() {
	m.armed, m.lease = false, Lease{}
}

// sweepDue reports whether to start a sweep now, and records that it was started.
func (m *machine) sweepDue(now time.Duration) bool {
	// Killed processes are watched until they have ended in any mode.
	if m.mode(now) != Fencing && len(m.dying) == 0 || m.sweep != 0 || now < m.next {
		return false
	}
	m.sweep, m.next = now, now+m.pace(now)
	return true
}

// pace returns the interval of sweeps. The grace is long enough for three of them.
func (m *machine) pace(now time.Duration) time.Duration {
	if now < max(m.lease.Until, m.caught)+calmAfter {
		return Scan
	}
	return max(Scan, min(calmScan, m.grace/3))
}

// swept applies a sweep's result.
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

// feed reports whether the watchdog may be fed: with a lease, or within the grace
// after the lease or after the last clean sweep.
func (m *machine) feed(now time.Duration) bool {
	switch m.mode(now) {
	case Holding:
		return true
	case Fencing:
		return now < max(m.clean, m.lease.Until)+m.grace
	}
	return false
}

// spare decides which instances a sweep leaves alone. It is a snapshot, because the
// reaper's goroutine uses it.
type spare struct {
	armed bool
	until time.Duration
	keep  map[string]bool
}

func (s spare) instance(now time.Duration, id string) bool {
	return !s.armed || now < s.until || s.keep[id]
}

// wake returns the duration until the next decision is needed, if no event arrives
// before.
func (m *machine) wake(now time.Duration) time.Duration {
	wait := time.Hour
	switch m.mode(now) {
	case Holding:
		// Not the whole time to the deadline: the timer stops while the machine is
		// suspended, CLOCK_BOOTTIME does not.
		wait = min(m.lease.Until-now, feedEvery)
	case Fencing:
		wait = feedEvery
	}
	if m.sweep == 0 && (m.mode(now) == Fencing || len(m.dying) > 0) {
		wait = min(wait, m.next-now)
	}
	return max(wait, 0)
}
