package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// machine is a QEMU of an instance, observed from outside.
type machine struct {
	instance string
	pid      int
	started  string // start time by the kernel's clock; identifies the process together with pid
	node     int    // 0: of a node that is not registered
	stopped  bool   // by SIGSTOP
	incoming bool   // the target of a migration
}

func (m machine) String() string {
	return fmt.Sprintf("%s: pid %d on n%d, stopped %v, incoming %v", m.instance, m.pid, m.node, m.stopped, m.incoming)
}

// watch observes every QEMU of the cluster ten times a second, independently of Basalt's own
// state.
type watch struct {
	done  chan struct{}
	ended sync.WaitGroup

	mu     sync.Mutex
	spaces map[string]int       // node by PID namespace
	seen   map[string]time.Time // when an instance last had a QEMU
	pairs  []string             // simultaneous QEMUs of one instance that are not a migration
	rounds int
}

func newWatch() *watch {
	w := &watch{done: make(chan struct{}), spaces: map[string]int{}, seen: map[string]time.Time{}}
	w.ended.Go(func() {
		for {
			w.observe()
			select {
			case <-w.done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return w
}

func (w *watch) end() {
	close(w.done)
	w.ended.Wait()
}

// register adds a node whose first process is pid.
func (w *watch) register(node, pid int) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spaces[space] = node
}

var guest = regexp.MustCompile(`guest=basalt-(ins-[0-9a-f]{12})`)

// machines returns the QEMUs of the cluster.
func (w *watch) machines() (all []machine) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		comm, _ := os.ReadFile(dir + "/comm")
		if !strings.HasPrefix(string(comm), "qemu-system") {
			continue
		}
		argv, err := os.ReadFile(dir + "/cmdline")
		m := guest.FindSubmatch(argv)
		space, err2 := os.Readlink(dir + "/ns/pid")
		if err != nil || err2 != nil || m == nil {
			continue
		}
		w.mu.Lock()
		node, ours := w.spaces[space]
		w.mu.Unlock()
		state, started := stat(dir)
		if !ours || state == "" || state == "Z" || state == "X" {
			continue
		}
		all = append(all, machine{string(m[1]), number(filepath.Base(dir)), started, node, state == "T", strings.Contains(string(argv), "\x00-incoming\x00")})
	}
	return all
}

// stat returns a process's state and start time (proc_pid_stat(5)).
func stat(dir string) (state, started string) {
	raw, err := os.ReadFile(dir + "/stat")
	i := strings.LastIndex(string(raw), ") ")
	if err != nil || i < 0 {
		return "", ""
	}
	f := strings.Fields(string(raw)[i+2:])
	if len(f) < 20 {
		return "", ""
	}
	return f[0], f[19]
}

// lives reports whether the same process still exists.
func (m machine) lives() bool {
	state, started := stat(fmt.Sprintf("/proc/%d", m.pid))
	return started == m.started && state != "Z" && state != "X" && state != ""
}

func (w *watch) observe() {
	now := map[string][]machine{}
	for _, m := range w.machines() {
		now[m.instance] = append(now[m.instance], m)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds++
	for id, all := range now {
		w.seen[id] = time.Now()
		// Reading /proc takes time: only processes that exist at the same time now count.
		all = slices.DeleteFunc(all, func(m machine) bool { return !m.lives() })
		if len(all) < 2 || migrates(all) {
			continue
		}
		w.pairs = append(w.pairs, fmt.Sprintf("%s %v", time.Now().UTC().Format(time.TimeOnly), all))
	}
}

// migrates reports whether these are the two ends of a migration: the younger one was started
// with -incoming. One that was started to run has always been started too early.
func migrates(all []machine) bool {
	if len(all) != 2 || all[0].node == all[1].node || all[0].stopped || all[1].stopped {
		return false
	}
	younger := all[0]
	if number(all[1].started) > number(younger.started) {
		younger = all[1]
	}
	return younger.incoming
}

// of returns the QEMUs of an instance.
func (w *watch) of(instance string) (all []machine) {
	for _, m := range w.machines() {
		if m.instance == instance {
			all = append(all, m)
		}
	}
	return all
}

// lastSeen returns when the instance last had a QEMU.
func (w *watch) lastSeen(instance string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[instance]
}

// check reports the instances that had two QEMUs at a time.
func (w *watch) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.pairs {
		if i == 10 {
			t.Errorf("… and %d more", len(w.pairs)-i)
			break
		}
		t.Errorf("an instance had more than one QEMU: %s", p)
	}
	w.pairs = nil
	if w.rounds == 0 {
		t.Error("the watch never observed the processes")
	}
}
