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
		t.Error("idle does something")
	}
	if err := m.setLease(5*sec, Lease{Until: 5*sec + maxLease + 1}); err == nil || m.armed {
		t.Error("a lease for ever is taken")
	}
	if err := m.setLease(5*sec, Lease{Until: 15 * sec}); err != nil {
		t.Fatal(err)
	}
	if m.mode(14*sec) != Holding || !m.feed(14*sec) || m.sweepDue(14*sec) || m.wake(15*sec-1) != 1 {
		t.Error("holding")
	}
	if m.mode(15*sec) != Fencing || !m.feed(15*sec) || !m.sweepDue(15*sec) {
		t.Error("the lease is not over at its end")
	}
	if m.sweepDue(16 * sec) {
		t.Error("two sweeps at once")
	}
	m.swept(16*sec, SweepResult{Dying: []Killed{{Instance: "a", PID: 1}}})
	if !m.feed(18*sec-1) || m.feed(18*sec) {
		t.Error("fed when killing takes more than the grace")
	}
	if !m.sweepDue(17 * sec) {
		t.Error("no second sweep")
	}
	m.swept(17*sec, SweepResult{Err: errors.New("x")})
	if m.clean != 0 {
		t.Error("a sweep that failed is clean")
	}
	if !m.sweepDue(19 * sec) {
		t.Error("no third sweep")
	}
	m.swept(20*sec, SweepResult{Gone: []Killed{{Instance: "a", PID: 1}}})
	if !m.feed(22*sec-1) || m.feed(22*sec) { // from when the sweep began
		t.Error("not fed after everything is gone, or for too long")
	}
	if err := m.setLease(20*sec, Lease{Until: 25 * sec}); err != nil || m.mode(20*sec) != Holding {
		t.Error("no new lease after fencing")
	}
	if err := m.setLease(21*sec, Lease{Until: 0}); err != nil || m.mode(21*sec) != Fencing || !m.feed(24*sec-1) || m.feed(24*sec) {
		t.Error("a lease ended early")
	}
	m.standDown()
	if m.mode(22*sec) != Idle || m.feed(22*sec) {
		t.Error("stood down")
	}
	if err := m.setLease(30*sec, Lease{Until: 0}); err != nil || m.mode(30*sec) != Fencing || m.feed(30*sec) {
		t.Error("armed without a lease: nothing is fed before the first clean sweep")
	}
}

func TestVictimsAreFollowedUnderANewLease(t *testing.T) {
	m := &machine{grace: 3 * sec, armed: true}
	if !m.sweepDue(sec) {
		t.Fatal("no sweep")
	}
	m.swept(sec, SweepResult{Dying: []Killed{{Instance: "a", PID: 1}}})
	_ = m.setLease(sec, Lease{Until: 10 * sec})
	if !m.sweepDue(2 * sec) {
		t.Error("forgotten")
	}
	m.swept(2*sec, SweepResult{Gone: []Killed{{Instance: "a", PID: 1}}})
	if m.sweepDue(3*sec) || len(m.killed) != 1 {
		t.Error("sweeps under a lease")
	}
	for range 1000 {
		m.swept(3*sec, SweepResult{Gone: []Killed{{Instance: "a", PID: 1}}})
	}
	if len(m.killed) != maxKilled {
		t.Error(len(m.killed))
	}
}

// Who finds nobody for a while looks less often, but often enough for the grace.
func TestPace(t *testing.T) {
	m := &machine{grace: 3 * sec, armed: true, lease: Lease{Until: 10 * sec}}
	for now, want := range map[time.Duration]time.Duration{10 * sec: Scan, 24 * sec: Scan, 25 * sec: calmScan} {
		if got := m.pace(now); got != want {
			t.Errorf("at %s every %s", now, got)
		}
	}
	if !m.sweepDue(30*sec) || m.wake(30*sec) > feedEvery {
		t.Fatal("no sweep")
	}
	m.swept(30*sec, SweepResult{Dying: []Killed{{Instance: "a", PID: 1}}})
	if m.sweepDue(30*sec) || !m.sweepDue(30*sec+Scan) || m.pace(31*sec) != Scan {
		t.Error("it does not look at once for more")
	}
	m.grace = 900 * time.Millisecond
	if got := m.pace(time.Hour); got != 300*time.Millisecond {
		t.Errorf("every %s", got)
	}
	if idle := (&machine{}); idle.wake(sec) < time.Minute {
		t.Error("it wakes up for nothing")
	}
}

func TestSpare(t *testing.T) {
	s := spare{armed: true, until: 10 * sec, keep: map[string]bool{"a": true}}
	if !s.instance(9*sec, "b") || s.instance(10*sec, "b") || !s.instance(10*sec, "a") || !(spare{}).instance(10*sec, "b") {
		t.Error("spares the wrong ones")
	}
}

func TestStateFile(t *testing.T) {
	dir, run := t.TempDir(), t.TempDir()
	f := files{state: dir, run: run, replace: atomicfile.WriteFile}
	m, err := load(f, "boot1")
	if err != nil || m.armed {
		t.Fatal("a new node is armed", err)
	}
	m.setKeep([]string{"b", "a"})
	_ = m.setLease(sec, Lease{Until: 5 * sec, Node: "n", Epoch: 3})
	if err := f.save(m.store("boot1")); err != nil {
		t.Fatal(err)
	}
	same, err := load(f, "boot1")
	if err != nil || !same.armed || same.lease != m.lease || len(same.keep) != 2 {
		t.Errorf("%+v, %v", same, err)
	}
	for _, boot := range []string{"boot2", ""} {
		later, err := load(f, boot)
		if err != nil || !later.armed || later.lease != (Lease{}) || !later.keep["a"] {
			t.Errorf("after a reboot: %+v, %v", later, err)
		}
	}
	// A lease that is only longer touches no disk.
	if err := os.Remove(dir + "/" + stateFile); err != nil {
		t.Fatal(err)
	}
	_ = m.setLease(sec, Lease{Until: 6 * sec, Node: "n", Epoch: 3})
	if err := f.save(m.store("boot1")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/" + stateFile); err == nil {
		t.Error("the state is written with every lease")
	}
	// A file of an older version has the lease too.
	writeFile(t, dir+"/"+stateFile, `{"v":1,"boot":"boot1","armed":true,"lease":{"until_boottime_ns":4000000000,"node":"n","epoch":3}}`)
	if now, err := load(f, "boot1"); err != nil || now.lease != m.lease {
		t.Errorf("%+v, %v", now, err)
	}
	if err := os.Rename(run+"/"+leaseFile, run+"/away"); err != nil {
		t.Fatal(err)
	}
	if old, err := load(f, "boot1"); err != nil || old.lease.Until != 4*sec {
		t.Errorf("%+v, %v", old, err)
	}
	writeFile(t, run+"/"+leaseFile, "{")
	if bad, err := load(f, "boot1"); err == nil || !bad.armed || bad.lease.Until != 0 {
		t.Errorf("%+v, %v", bad, err)
	}
	m.standDown()
	if err := f.save(m.store("boot1")); err != nil {
		t.Fatal(err)
	}
	if down, err := load(f, "boot1"); err != nil || down.armed {
		t.Error("stood down, and armed again", err)
	}
	for _, bad := range []string{"", "{", `{"v":2}`} {
		writeFile(t, dir+"/"+stateFile, bad)
		if m, err := load(f, "boot1"); err == nil || !m.armed || m.lease.Until != 0 {
			t.Errorf("%q: %+v, %v", bad, m, err)
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
		t.Error("two on one state")
	}
	_ = f.Close()
	g, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Close()
}
