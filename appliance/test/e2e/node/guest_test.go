package node_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// guest is an instance, with the client of its tenant.
type guest struct {
	n  *node
	c  *client.API
	id string
}

func (g guest) get(t *testing.T) api.Instance {
	t.Helper()
	in, err := client.Of[api.Instance](g.c).Get(g.n.ctx, g.id, client.Query{})
	if err != nil {
		t.Fatalf("get instance: %v", err)
	}
	return in
}

// phase waits until the instance has the phase.
func (g guest) phase(t *testing.T, want api.InstancePhase, limit time.Duration) api.Instance {
	t.Helper()
	var in api.Instance
	for watch := patience.Start(); ; {
		if in = g.get(t); in.Status.Phase == want {
			return in
		}
		if watch.Over(limit) {
			t.Fatalf("instance %s is not %s within %v: status %+v, assignment %+v", in.Meta.Name, want, limit, in.Status, in.Assignment)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// booted waits for the guest agent and the guest tools of a Running instance, and logs how long
// each took since began.
func (g guest) booted(t *testing.T, what string, began time.Time) {
	t.Helper()
	const limit = 8 * time.Minute
	since := func() time.Duration { return time.Since(began).Round(100 * time.Millisecond) }
	in := g.phase(t, api.InstanceRunning, limit)
	running, again := since(), false
	patience.Until(t, limit, "the guest agent", func() bool {
		_, err := g.c.Exec(g.n.ctx, g.id, api.ExecRequest{Argv: []string{"true"}})
		if err != nil && !again && g.get(t).Status.Phase == api.InstanceFailed && g.aborted(t) {
			again, began = true, time.Now()
			if _, err := g.c.StartInstance(g.n.ctx, g.id); err != nil {
				t.Fatalf("start the instance again: %v", err)
			}
		}
		return err == nil
	})
	agent := since()
	patience.Until(t, limit, "the guest tools", func() bool { in = g.get(t); return in.Status.GuestTools != "" })
	tools := since()
	if in.Spec.Vgpu != nil {
		patience.Until(t, limit, "the GPU is ready", func() bool {
			c, _ := api.GPUReadyOf(g.get(t))
			return c.Status
		})
	}
	t.Logf("%s: Running after %v, guest agent after %v, guest tools %s after %v, GPU ready after %v", what, running, agent, in.Status.GuestTools, tools, since())
}

// setUp waits until cloud-init has ended, and checks that it succeeded.
func (g guest) setUp(t *testing.T) {
	t.Helper()
	var c api.Condition
	patience.Until(t, 4*time.Minute, "cloud-init has ended", func() bool {
		for _, c = range g.get(t).Status.Conditions {
			if c.Type == "SetUp" {
				return c.Reason != "running"
			}
		}
		return false
	})
	if !c.Status {
		t.Errorf("cloud-init ended with %s: %s, want success", c.Reason, c.Message)
	}
}

// aborted reports whether the instance's QEMU was ended by a bug in its emulator, which
// occasionally affects guests with two processors (QEMU 10.0, docs/notes/guests.md). Basalt
// cannot prevent it.
func (g guest) aborted(t *testing.T) bool {
	t.Helper()
	raw, err := os.ReadFile("/var/log/libvirt/qemu/basalt-" + g.id + ".log")
	if err != nil {
		t.Logf("QEMU's log: %v", err)
		return false
	}
	for _, line := range lines(string(raw)) {
		if strings.Contains(line, "Assertion") && (strings.Contains(line, "iotlb_to_section") || strings.Contains(line, "msix_table_mmio_write")) {
			t.Logf("QEMU's emulator aborted, the instance is started again: %s", line)
			return true
		}
	}
	return false
}

// execLimit, in seconds, ends a program that hangs in a guest. The test's own limits restrict
// how much work it may need.
const execLimit = 600

// sh runs a shell script in the guest, which must succeed.
func (g guest) sh(t *testing.T, script string) string {
	t.Helper()
	r, err := g.c.Exec(g.n.ctx, g.id, api.ExecRequest{Argv: []string{"sh", "-c", script}, TimeoutSeconds: execLimit})
	if err != nil {
		t.Fatalf("in the guest, %s: %v", script, err)
	}
	if r.ExitCode != 0 {
		t.Fatalf("in the guest, %s: exit code %d\n%s%s", script, r.ExitCode, r.Stdout, r.Stderr)
	}
	return string(r.Stdout)
}

// writeProgram writes a program into the guest.
func (g guest) writeProgram(t *testing.T, path string, content []byte) {
	t.Helper()
	r, err := g.c.Exec(g.n.ctx, g.id, api.ExecRequest{Argv: []string{"sh", "-c", "cat >" + path + " && chmod 755 " + path + " && sync"}, Stdin: content, TimeoutSeconds: execLimit})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("write program %s: %v %+v", path, err, r)
	}
}

// loop is a GPU program (testdata/loop.c) that runs in the guest.
type loop struct {
	g      guest
	name   string
	pid    uint32 // in the guest; gpud's ID of the process
	worker int    // on the node
}

// loop starts a GPU program that holds that much VRAM until finish stops it, and waits until it
// has started.
func (g guest) loop(t *testing.T, name string, mibs int) loop {
	t.Helper()
	workers := g.n.of("basalt-worker", g.id)
	was, _ := g.n.vgpu(g.id)
	g.sh(t, fmt.Sprintf(`rm -f /root/%[1]s.*; setsid sh -c '/root/loop %[2]d 3600 /root/%[1]s.stop; echo "exit $?"' </dev/null >/root/%[1]s.out 2>&1 & true`, name, mibs))
	l := loop{g: g, name: name}
	patience.Until(t, time.Minute, name+" has started", func() bool { return strings.Contains(l.output(t), "started") })
	started := fresh(workers, g.n.of("basalt-worker", g.id))
	if len(started) != 1 {
		t.Fatalf("new workers for %s = %v, want one", name, started)
	}
	l.worker = started[0]
	patience.Until(t, 30*time.Second, name+"'s process is registered with gpud", func() bool {
		now, _ := g.n.vgpu(g.id)
		for _, p := range now.Processes {
			if !listed(was, p.PID) {
				l.pid = p.PID
			}
		}
		return l.pid != 0
	})
	return l
}

func listed(v wire.VGPU, pid uint32) bool {
	for _, p := range v.Processes {
		if p.PID == pid {
			return true
		}
	}
	return false
}

func (l loop) output(t *testing.T) string {
	t.Helper()
	return l.g.sh(t, "cat /root/"+l.name+".out 2>/dev/null || true")
}

// ended waits until the program has ended, and returns its exit code and output.
func (l loop) ended(t *testing.T, limit time.Duration) (int, string) {
	t.Helper()
	var out string
	patience.Until(t, limit, l.name+" has ended", func() bool { out = l.output(t); return strings.Contains(out, "exit ") })
	_, code, _ := strings.Cut(out, "exit ")
	n, err := strconv.Atoi(strings.TrimSpace(code))
	if err != nil {
		t.Fatalf("output of %s = %q, want a numeric exit code", l.name, out)
	}
	return n, out
}

// finish tells the program to stop, checks that it succeeds, and returns the number of launches
// it made.
func (l loop) finish(t *testing.T) uint64 {
	t.Helper()
	if out := l.output(t); strings.Contains(out, "exit ") {
		t.Errorf("%s has ended before it was told to stop: %s", l.name, out)
	}
	l.g.sh(t, "touch /root/"+l.name+".stop")
	code, out := l.ended(t, time.Minute)
	var launches uint64
	_, last, _ := strings.Cut(out, "loop: started\n")
	if _, err := fmt.Sscanf(last, "loop: %d launches OK", &launches); err != nil || code != 0 || launches == 0 {
		t.Errorf("%s ended with %d, want 0 and a number of launches: %s", l.name, code, out)
	}
	return launches
}

// gone waits until the process is no longer registered with gpud, which means that its VRAM is
// free, and logs how long that took.
func (l loop) gone(t *testing.T, what string) {
	t.Helper()
	took := patience.Until(t, 20*time.Second, what+": the VRAM is freed", func() bool { v, ok := l.g.n.vgpu(l.g.id); return ok && !listed(v, l.pid) })
	t.Logf("%s: VRAM freed after %v", what, took)
}
