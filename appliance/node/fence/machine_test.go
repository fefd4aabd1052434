package fence

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

const sec = time.Second

func TestMachine(t *testing.T) {
	m := &machine{grace: 3 * sec}
	if m.mode(5*sec) != Idle || m.feed(5*sec) || m.sweepDue(5*sec) {
		t.Error("idle machine at 5 s: want mode idle, no feeding and no sweep")
	}
	if err := m.setLease(5*sec, Lease{Until: 5*sec + maxLease + 1}); err == nil || m.armed {
		t.Error("setLease beyond maxLease: want an error and an unarmed machine")
	}
	if err := m.setLease(5*sec, Lease{Until: 15 * sec}); err != nil {
		t.Fatal(err)
	}
	if m.mode(14*sec) != Holding || !m.feed(14*sec) || m.sweepDue(14*sec) || m.wake(15*sec-1) != 1 {
		t.Error("machine with a lease at 14 s: want mode holding, feeding, no sweep, and a wake at the deadline")
	}
	if m.mode(15*sec) != Fencing || !m.feed(15*sec) || !m.sweepDue(15*sec) {
		t.Error("machine at the deadline: want mode fencing, feeding within the grace, and a sweep")
	}
	if m.sweepDue(16 * sec) {
		t.Error("sweepDue during a sweep = true, want false")
	}
	m.swept(16*sec, SweepResult{Dying: []Killed{{Instance: "a", PID: 1}}})
	if !m.feed(18*sec-1) || m.feed(18*sec) {
		t.Error("feed around the end of the grace (18 s): want true before and false from then on")
	}
	if !m.sweepDue(17 * sec) {
		t.Error("sweepDue after the first sweep = false, want true")
	}
	m.swept(17*sec, SweepResult{Err: errors.New("x")})
	if m.clean != 0 {
		t.Errorf("last clean sweep after a failed one at %s, want none", m.clean)
	}
	if !m.sweepDue(19 * sec) {
		t.Error("sweepDue after the failed sweep = false, want true")
	}
	m.swept(20*sec, SweepResult{Gone: []Killed{{Instance: "a", PID: 1}}})
	if !m.feed(22*sec-1) || m.feed(22*sec) { // counted from the start of the sweep
		t.Error("feed after a clean sweep started at 19 s: want true before 22 s and false from then on")
	}
	if err := m.setLease(20*sec, Lease{Until: 25 * sec}); err != nil || m.mode(20*sec) != Holding {
		t.Errorf("setLease after fencing: error %v, mode %s; want %s", err, m.mode(20*sec), Holding)
	}
	if err := m.setLease(21*sec, Lease{Until: 0}); err != nil || m.mode(21*sec) != Fencing || !m.feed(24*sec-1) || m.feed(24*sec) {
		t.Error("after a lease ended early at 21 s: want mode fencing and feeding before 24 s only")
	}
	m.standDown()
	if m.mode(22*sec) != Idle || m.feed(22*sec) {
		t.Error("machine that stood down: want mode idle and no feeding")
	}
	if err := m.setLease(30*sec, Lease{Until: 0}); err != nil || m.mode(30*sec) != Fencing || m.feed(30*sec) {
		t.Error("machine armed without a lease: want mode fencing and no feeding before the first clean sweep")
	}
}

func TestKilledProcessesUnderNewLease(t *testing.T) {
	m := &machine{grace: 3 * sec, armed: true}
	if !m.sweepDue(sec) {
		t.Fatal("sweepDue of an armed machine without a lease = false, want true")
	}
	m.swept(sec, SweepResult{Dying: []Killed{{Instance: "a", PID: 1}}})
	_ = m.setLease(sec, Lease{Until: 10 * sec})
	if !m.sweepDue(2 * sec) {
		t.Error("sweepDue with a dying process under a new lease = false, want true")
	}
	m.swept(2*sec, SweepResult{Gone: []Killed{{Instance: "a", PID: 1}}})
	if m.sweepDue(3*sec) || len(m.killed) != 1 {
		t.Errorf("after the last process ended under a lease: killed = %v, want one and no further sweep", m.killed)
	}
	for range 1000 {
		m.swept(3*sec, SweepResult{Gone: []Killed{{Instance: "a", PID: 1}}})
	}
	if len(m.killed) != maxKilled {
		t.Errorf("machine remembers %d killed processes, want %d", len(m.killed), maxKilled)
	}
}

// TestPace checks that sweeps are less frequent when nothing was found for a while,
// but frequent enough for the grace.
func TestPace(t *testing.T) {
	m := &machine{grace: 3 * sec, armed: true, lease: Lease{Until: 10 * sec}}
	for now, want := range map[time.Duration]time.Duration{10 * sec: Scan, 24 * sec: Scan, 25 * sec: calmScan} {
		if got := m.pace(now); got != want {
			t.Errorf("pace at %s = %s, want %s", now, got, want)
		}
	}
	if !m.sweepDue(30*sec) || m.wake(30*sec) > feedEvery {
		t.Fatal("at 30 s: want a sweep due and a wake within feedEvery")
	}
	m.swept(30*sec, SweepResult{Dying: []Killed{{Instance: "a", PID: 1}}})
	if m.sweepDue(30*sec) || !m.sweepDue(30*sec+Scan) || m.pace(31*sec) != Scan {
		t.Errorf("pace after a sweep that found a process = %s, want the next sweep after %s", m.pace(31*sec), Scan)
	}
	m.grace = 900 * time.Millisecond
	if got := m.pace(time.Hour); got != 300*time.Millisecond {
		t.Errorf("pace with a grace of 900 ms = %s, want 300ms", got)
	}
	if idle := (&machine{}); idle.wake(sec) < time.Minute {
		t.Errorf("wake of an idle machine = %s, want at least a minute", idle.wake(sec))
	}
}

func TestSpare(t *testing.T) {
	s := spare{armed: true, until: 10 * sec, keep: map[string]bool{"a": true}}
	if !s.instance(9*sec, "b") || s.instance(10*sec, "b") || !s.instance(10*sec, "a") || !(spare{}).instance(10*sec, "b") {
		t.Error("want all spared before the deadline or unarmed, and only kept instances from the deadline on")
	}
}

func TestStateFile(t *testing.T) {
	dir, run := t.TempDir(), t.TempDir()
	f := files{state: dir, run: run, replace: atomicfile.WriteFile}
	m, err := load(f, "boot1")
	if err != nil || m.armed {
		t.Fatalf("state of a new node: armed %t, error %v; want false", m.armed, err)
	}
	m.setKeep([]string{"b", "a"})
	_ = m.setLease(sec, Lease{Until: 5 * sec, Node: "n", Epoch: 3})
	if err := f.save(m.store("boot1")); err != nil {
		t.Fatal(err)
	}
	same, err := load(f, "boot1")
	if err != nil || !same.armed || same.lease != m.lease || len(same.keep) != 2 {
		t.Errorf("state loaded in the same boot = %+v, error %v; want it armed with the lease and two kept instances", same, err)
	}
	for _, boot := range []string{"boot2", ""} {
		later, err := load(f, boot)
		if err != nil || !later.armed || later.lease != (Lease{}) || !later.keep["a"] {
			t.Errorf("state loaded in another boot = %+v, error %v; want it armed without a lease, keeping a", later, err)
		}
	}
	// A lease that is only longer does not write to the disk.
	if err := os.Remove(dir + "/" + stateFile); err != nil {
		t.Fatal(err)
	}
	_ = m.setLease(sec, Lease{Until: 6 * sec, Node: "n", Epoch: 3})
	if err := f.save(m.store("boot1")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/" + stateFile); err == nil {
		t.Error("state file exists after a longer lease was saved, want it not written")
	}
	// A state file of an older version includes the lease.
	writeFile(t, dir+"/"+stateFile, `{"v":1,"boot":"boot1","armed":true,"lease":{"until_boottime_ns":4000000000,"node":"n","epoch":3}}`)
	if now, err := load(f, "boot1"); err != nil || now.lease != m.lease {
		t.Errorf("state with both leases = %+v, error %v; want the lease of its own file", now, err)
	}
	if err := os.Rename(run+"/"+leaseFile, run+"/away"); err != nil {
		t.Fatal(err)
	}
	if old, err := load(f, "boot1"); err != nil || old.lease.Until != 4*sec {
		t.Errorf("state of an older version = %+v, error %v; want its lease until 4 s", old, err)
	}
	writeFile(t, run+"/"+leaseFile, "{")
	if bad, err := load(f, "boot1"); err == nil || !bad.armed || bad.lease.Until != 0 {
		t.Errorf("state with a broken lease file = %+v, error %v; want an error and an armed machine without a lease", bad, err)
	}
	m.standDown()
	if err := f.save(m.store("boot1")); err != nil {
		t.Fatal(err)
	}
	if down, err := load(f, "boot1"); err != nil || down.armed {
		t.Errorf("state after disarming: armed %t, error %v; want false", down.armed, err)
	}
	for _, bad := range []string{"", "{", `{"v":2}`} {
		writeFile(t, dir+"/"+stateFile, bad)
		if m, err := load(f, "boot1"); err == nil || !m.armed || m.lease.Until != 0 {
			t.Errorf("state file %q loaded as %+v, error %v; want an error and an armed machine without a lease", bad, m, err)
		}
	}
}

func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	f, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); err == nil {
		t.Error("second lock of the state directory succeeded, want an error")
	}
	_ = f.Close()
	g, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Close()
}
