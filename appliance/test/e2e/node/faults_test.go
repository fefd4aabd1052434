package node_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// guestProcessKilled: the memory of a program that is killed in the guest is
// free at once, and its neighbour does not notice.
func guestProcessKilled(t *testing.T, w *world) {
	victim, other := w.small.loop(t, "victim", 256), w.small.loop(t, "other", 64)
	if v, _ := w.vgpu(w.small.id); v.VRAMUsed < 320*mib {
		t.Errorf("both hold %d bytes together", v.VRAMUsed)
	}
	w.small.sh(t, fmt.Sprintf("kill -9 %d", victim.pid))
	victim.gone(t, "guest process killed")
	if v, _ := w.vgpu(w.small.id); v.VRAMUsed >= 128*mib || !listed(v, other.pid) {
		t.Errorf("afterwards %d bytes are held by %+v", v.VRAMUsed, v.Processes)
	}
	other.right(t)
}

// workerKilled: its guest process gets an error; the others and the VM go on.
func workerKilled(t *testing.T, w *world) {
	victim, other := w.small.loop(t, "victim", 256), w.small.loop(t, "other", 64)
	kill(t, victim.worker, syscall.SIGKILL)
	victim.gone(t, "worker killed")
	code, out := victim.ended(t, time.Minute)
	if code == 0 || !strings.Contains(out, "CUDA_ERROR") {
		t.Errorf("the worker's guest process ended with %d: %s", code, out)
	}
	t.Logf("the guest process of a killed worker: %s", strings.TrimSpace(out))
	other.right(t)
	if out := w.small.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("a new program on the same vGPU: %s", out)
	}
}

// outOfMemory: the vGPU's limit is the program's own error, and nobody else's.
func outOfMemory(t *testing.T, w *world) {
	r, err := w.tenant.Exec(w.ctx, w.small.id, api.ExecRequest{Argv: []string{"/root/loop", "1100", "1"}})
	if err != nil || r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("1100 MiB on a vGPU of 1024: %v, exit code %d: %s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	if out := w.small.sh(t, "/root/loop 900 1"); !strings.Contains(out, "OK") {
		t.Errorf("900 MiB on a vGPU of 1024: %s", out)
	}
}

// gpudKilled: running programs finish, each launch counted once.
func gpudKilled(t *testing.T, w *world) {
	patience.Until(t, time.Minute, "an idle vGPU", func() bool { v, ok := w.vgpu(w.small.id); return ok && len(v.Processes) == 0 })
	before, _ := w.vgpu(w.small.id)
	l := w.small.loop(t, "steady", 128)
	var at wire.VGPU
	patience.Until(t, time.Minute, "launches to be counted", func() bool {
		at, _ = w.vgpu(w.small.id)
		return at.Usage.Launches > before.Usage.Launches && at.Usage.GPUNanos > before.Usage.GPUNanos
	})
	w.gpud.end(syscall.SIGKILL)
	time.Sleep(2 * time.Second) // the time itself: so long the program launches with nobody there to count
	w.startGPUD()
	after, ok := w.vgpu(w.small.id)
	if !ok || after.Usage.GPUNanos < at.Usage.GPUNanos || after.Usage.Launches < at.Usage.Launches || after.Usage.VRAMByteSeconds < at.Usage.VRAMByteSeconds {
		t.Errorf("the totals shrank from %+v to %+v", at.Usage, after.Usage)
	}
	took := patience.Until(t, time.Minute, "the worker's return to gpud", func() bool {
		v, _ := w.vgpu(w.small.id)
		return listed(v, l.pid) && v.VRAMUsed >= 128*mib
	})
	t.Logf("the worker registered again %v after gpud answered", took)
	launches := l.right(t)
	patience.Until(t, time.Minute, "the worker to end", func() bool { v, ok := w.vgpu(w.small.id); return ok && len(v.Processes) == 0 })
	end, _ := w.vgpu(w.small.id)
	if got := end.Usage.Launches - before.Usage.Launches; got != launches {
		t.Errorf("the program made %d launches, %d were counted", launches, got)
	}
}

// controlPlaneKilled: VM, vGPU and program go on; the new one finds them.
func controlPlaneKilled(t *testing.T, w *world) {
	l := w.small.loop(t, "steady", 128)
	qemu, backend := w.the(t, "qemu-system", w.small.id), w.the(t, "basalt-vgpu", w.small.id)
	was := w.small.get(t)
	w.killBasaltd()
	time.Sleep(time.Second) // the time itself: so long nobody is there
	w.startBasaltd()
	// Its agent has looked at the machine, and gone on, when it has recorded more.
	recorded := w.recorded(t, w.small.id)[api.MeterVCPU]
	for range 2 {
		patience.Until(t, time.Minute, "more use of the machine to be recorded", func() bool {
			now := w.recorded(t, w.small.id)[api.MeterVCPU]
			more := now > recorded
			recorded = now
			return more
		})
	}
	in := w.small.phase(t, api.InstanceRunning, time.Minute)
	if in.Status.StartedAt == nil || !in.Status.StartedAt.Equal(*was.Status.StartedAt) || in.Status.LastError != "" || !vgpuAlive(in) {
		t.Errorf("the status was %+v and is %+v", was.Status, in.Status)
	}
	if w.the(t, "qemu-system", w.small.id) != qemu || w.the(t, "basalt-vgpu", w.small.id) != backend || !one(w) {
		t.Errorf("QEMU or backend was replaced; domains: %v", domains(w.id))
	}
	l.right(t)
}

func one(w *world) bool { return len(w.domainsOf(w.small.id)) == 1 }

func vgpuAlive(in api.Instance) bool {
	for _, c := range in.Status.Conditions {
		if c.Type == api.ConditionGPUReady {
			return c.Reason != string(api.GPUBackendEnded)
		}
	}
	return false
}

// backendUpgraded: basalt-vgpu re-executes itself under a running program.
func backendUpgraded(t *testing.T, w *world) {
	l := w.small.loop(t, "steady", 128)
	backend := w.the(t, "basalt-vgpu", w.small.id)
	kill(t, backend, syscall.SIGUSR2)
	took := patience.Until(t, time.Minute, "the new program in the backend's place", func() bool {
		return len(w.of("basalt-vgpu", "--handover-fd")) == 1
	})
	t.Logf("backend upgraded in %v", took)
	if w.the(t, "basalt-vgpu", w.small.id) != backend {
		t.Error("the backend is another process")
	}
	other := w.small.loop(t, "other", 32) // a new process on the new program
	other.right(t)
	l.right(t)
	if in := w.small.get(t); !vgpuAlive(in) || in.Status.Phase != api.InstanceRunning {
		t.Errorf("status %+v", in.Status)
	}
}

// backendKilled: the VM lives, its status says what is missing, a restart heals.
func backendKilled(t *testing.T, w *world) {
	victim := w.small.loop(t, "victim", 256)
	qemu := w.the(t, "qemu-system", w.small.id)
	kill(t, w.the(t, "basalt-vgpu", w.small.id), syscall.SIGKILL)
	victim.gone(t, "basalt-vgpu killed")
	took := patience.Until(t, time.Minute, "the status", func() bool { return !vgpuAlive(w.small.get(t)) })
	in := w.small.get(t)
	t.Logf("after %v the status says: %s", took, in.Status.LastError)
	if in.Status.Phase != api.InstanceRunning || !strings.Contains(in.Status.LastError, "restart") {
		t.Errorf("status %+v", in.Status)
	}
	if code, out := victim.ended(t, time.Minute); code == 0 || !strings.Contains(out, "CUDA_ERROR") {
		t.Errorf("the guest process of a killed backend ended with %d: %s", code, out)
	}
	if w.the(t, "qemu-system", w.small.id) != qemu {
		t.Error("QEMU was replaced")
	}
	began := time.Now()
	w.mustCLI(w.token, "instance", "restart", "small", "--project", "one")
	patience.Until(t, 2*time.Minute, "the restart", func() bool {
		i := w.small.get(t)
		return i.Status.Restarts == i.Spec.Restarts && i.Status.Restarts > 0
	})
	t.Logf("stopped after %v", time.Since(began).Round(100*time.Millisecond))
	w.small.booted(t, "restarted", time.Now())
	if in := w.small.get(t); !vgpuAlive(in) || in.Status.LastError != "" {
		t.Errorf("healed, status %+v", in.Status)
	}
	if out := w.small.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("vecadd after the restart: %s", out)
	}
}

// qemuKilled: Failed, and why; VRAM free; start brings it back.
func qemuKilled(t *testing.T, w *world) {
	victim := w.small.loop(t, "victim", 256)
	kill(t, w.the(t, "qemu-system", w.small.id), syscall.SIGKILL)
	victim.gone(t, "QEMU killed")
	w.crashed = time.Now()
	in := w.small.phase(t, api.InstanceFailed, time.Minute)
	t.Logf("the status says: %s", in.Status.LastError)
	if !strings.Contains(in.Status.LastError, "ended unexpectedly") || in.Status.StartedAt != nil {
		t.Errorf("status %+v", in.Status)
	}
	patience.Until(t, time.Minute, "the backend to end", func() bool { return len(w.of("basalt-vgpu", w.small.id)) == 0 })
	_, err := w.tenant.Exec(w.ctx, w.small.id, api.ExecRequest{Argv: []string{"true"}})
	if err == nil {
		t.Error("a program ran in a dead machine")
	}
}

// startedAfterCrash: what has crashed stays so until somebody starts it. Other
// parts run meanwhile.
func startedAfterCrash(t *testing.T, w *world) {
	const quiet = 12 * time.Second // the time itself: longer than a quiet instance is left alone
	time.Sleep(time.Until(w.crashed.Add(quiet)))
	w.small.phase(t, api.InstanceFailed, 0)
	began := time.Now()
	w.mustCLI(w.token, "instance", "start", "small", "--project", "one")
	w.small.booted(t, "started after a crash", began)
	if out := w.small.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("vecadd after the start: %s", out)
	}
}
