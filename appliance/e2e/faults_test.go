package e2e_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// guestProcessKilled: the memory of a program that is killed in the guest is
// free at once, and its neighbour does not notice.
func guestProcessKilled(t *testing.T, w *world) {
	victim, other := w.debian.loop(t, "victim", 256, 300), w.debian.loop(t, "other", 64, 12)
	if v, _ := w.vgpu(w.debian.id); v.VRAMUsed < 320*mib {
		t.Errorf("both hold %d bytes together", v.VRAMUsed)
	}
	w.debian.sh(t, "pkill -9 -f '^/root/loop 256 '")
	victim.gone(t, "guest process killed")
	if v, _ := w.vgpu(w.debian.id); v.VRAMUsed >= 128*mib || !listed(v, other.pid) {
		t.Errorf("afterwards %d bytes are held by %+v", v.VRAMUsed, v.Processes)
	}
	other.right(t, time.Minute)
}

// workerKilled: its guest process gets an error; the others and the VM go on.
func workerKilled(t *testing.T, w *world) {
	victim, other := w.debian.loop(t, "victim", 256, 300), w.debian.loop(t, "other", 64, 12)
	kill(t, victim.worker, syscall.SIGKILL)
	victim.gone(t, "worker killed")
	code, out := victim.ended(t, 30*time.Second)
	if code == 0 || !strings.Contains(out, "CUDA_ERROR") {
		t.Errorf("the worker's guest process ended with %d: %s", code, out)
	}
	t.Logf("the guest process of a killed worker: %s", strings.TrimSpace(out))
	other.right(t, time.Minute)
	if out := w.debian.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("a new program on the same vGPU: %s", out)
	}
}

// outOfMemory: the vGPU's limit is the program's own error, and nobody else's.
func outOfMemory(t *testing.T, w *world) {
	r, err := w.tenant.Exec(w.ctx, w.debian.id, api.ExecRequest{Argv: []string{"/root/loop", "1100", "1"}})
	if err != nil || r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("1100 MiB on a vGPU of 1024: %v, exit code %d: %s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	if out := w.debian.sh(t, "/root/loop 900 1"); !strings.Contains(out, "OK") {
		t.Errorf("900 MiB on a vGPU of 1024: %s", out)
	}
}

// gpudKilled: running programs finish, each launch counted once.
func gpudKilled(t *testing.T, w *world) {
	until(t, 20*time.Second, "an idle vGPU", func() bool { v, ok := w.vgpu(w.debian.id); return ok && len(v.Processes) == 0 })
	before, _ := w.vgpu(w.debian.id)
	l := w.debian.loop(t, "steady", 128, 14)
	time.Sleep(2 * time.Second)
	at, _ := w.vgpu(w.debian.id)
	w.gpud.end(syscall.SIGKILL)
	time.Sleep(2 * time.Second)
	w.startGPUD()
	after, ok := w.vgpu(w.debian.id)
	if !ok || after.Usage.GPUNanos < at.Usage.GPUNanos || after.Usage.Launches < at.Usage.Launches || after.Usage.VRAMByteSeconds < at.Usage.VRAMByteSeconds {
		t.Errorf("the totals shrank from %+v to %+v", at.Usage, after.Usage)
	}
	took := until(t, 20*time.Second, "the worker's return to gpud", func() bool {
		v, _ := w.vgpu(w.debian.id)
		return listed(v, l.pid) && v.VRAMUsed >= 128*mib
	})
	t.Logf("the worker registered again %v after gpud answered", took)
	launches := l.right(t, time.Minute)
	until(t, 20*time.Second, "the worker to end", func() bool { v, ok := w.vgpu(w.debian.id); return ok && len(v.Processes) == 0 })
	end, _ := w.vgpu(w.debian.id)
	if got := end.Usage.Launches - before.Usage.Launches; got != launches {
		t.Errorf("the program made %d launches, %d were counted", launches, got)
	}
}

// controlPlaneKilled: VM, vGPU and program go on; the new one finds them.
func controlPlaneKilled(t *testing.T, w *world) {
	l := w.debian.loop(t, "steady", 128, 14)
	qemu, backend := w.the(t, "qemu-system", w.debian.id), w.the(t, "basalt-vgpu", w.debian.id)
	was := w.debian.get(t)
	w.killBasaltd()
	time.Sleep(time.Second)
	w.startBasaltd()
	time.Sleep(3 * time.Second) // time to do something wrong
	in := w.debian.phase(t, api.InstanceRunning, 20*time.Second)
	if in.Status.StartedAt == nil || !in.Status.StartedAt.Equal(*was.Status.StartedAt) || in.Status.LastError != "" || !vgpuAlive(in) {
		t.Errorf("the status was %+v and is %+v", was.Status, in.Status)
	}
	if w.the(t, "qemu-system", w.debian.id) != qemu || w.the(t, "basalt-vgpu", w.debian.id) != backend || !one(w) {
		t.Errorf("QEMU or backend was replaced; domains: %v", domains(w.id))
	}
	l.right(t, time.Minute)
}

func one(w *world) bool { return len(w.domainsOf(w.debian.id)) == 1 }

func vgpuAlive(in api.Instance) bool {
	for _, c := range in.Status.Conditions {
		if c.Type == "VGPU" {
			return c.Status
		}
	}
	return false
}

// backendUpgraded: basalt-vgpu re-executes itself under a running program.
func backendUpgraded(t *testing.T, w *world) {
	l := w.debian.loop(t, "steady", 128, 10)
	backend := w.the(t, "basalt-vgpu", w.debian.id)
	kill(t, backend, syscall.SIGUSR2)
	took := until(t, 20*time.Second, "the new program in the backend's place", func() bool {
		return len(w.of("basalt-vgpu", "--handover-fd")) == 1
	})
	t.Logf("backend upgraded in %v", took)
	if w.the(t, "basalt-vgpu", w.debian.id) != backend {
		t.Error("the backend is another process")
	}
	other := w.debian.loop(t, "other", 32, 10) // a new process on the new program
	other.right(t, time.Minute)
	l.right(t, time.Minute)
	if in := w.debian.get(t); !vgpuAlive(in) || in.Status.Phase != api.InstanceRunning {
		t.Errorf("status %+v", in.Status)
	}
}

// backendKilled: the VM lives, its status says what is missing, a restart heals.
func backendKilled(t *testing.T, w *world) {
	victim := w.debian.loop(t, "victim", 256, 300)
	qemu := w.the(t, "qemu-system", w.debian.id)
	kill(t, w.the(t, "basalt-vgpu", w.debian.id), syscall.SIGKILL)
	victim.gone(t, "basalt-vgpu killed")
	took := until(t, 20*time.Second, "the status", func() bool { return !vgpuAlive(w.debian.get(t)) })
	in := w.debian.get(t)
	t.Logf("after %v the status says: %s", took, in.Status.LastError)
	if in.Status.Phase != api.InstanceRunning || !strings.Contains(in.Status.LastError, "restart") {
		t.Errorf("status %+v", in.Status)
	}
	if code, out := victim.ended(t, 30*time.Second); code == 0 || !strings.Contains(out, "CUDA_ERROR") {
		t.Errorf("the guest process of a killed backend ended with %d: %s", code, out)
	}
	if w.the(t, "qemu-system", w.debian.id) != qemu {
		t.Error("QEMU was replaced")
	}
	began := time.Now()
	w.mustCLI(w.token, "instance", "restart", "main", "--project", "one")
	until(t, 2*stopGrace, "the restart", func() bool {
		i := w.debian.get(t)
		return i.Status.Restarts == i.Spec.Restarts && i.Status.Restarts > 0
	})
	t.Logf("stopped after %v", time.Since(began).Round(100*time.Millisecond))
	w.debian.booted(t, "restarted", time.Now())
	if in := w.debian.get(t); !vgpuAlive(in) || in.Status.LastError != "" {
		t.Errorf("healed, status %+v", in.Status)
	}
	if out := w.debian.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("vecadd after the restart: %s", out)
	}
}

// qemuKilled: Failed, and why; VRAM free; start brings it back.
func qemuKilled(t *testing.T, w *world) {
	victim := w.debian.loop(t, "victim", 256, 300)
	kill(t, w.the(t, "qemu-system", w.debian.id), syscall.SIGKILL)
	victim.gone(t, "QEMU killed")
	in := w.debian.phase(t, api.InstanceFailed, 30*time.Second)
	t.Logf("the status says: %s", in.Status.LastError)
	if !strings.Contains(in.Status.LastError, "ended unexpectedly") || in.Status.StartedAt != nil {
		t.Errorf("status %+v", in.Status)
	}
	until(t, 20*time.Second, "the backend to end", func() bool { return len(w.of("basalt-vgpu", w.debian.id)) == 0 })
	_, err := w.tenant.Exec(w.ctx, w.debian.id, api.ExecRequest{Argv: []string{"true"}})
	if err == nil {
		t.Error("a program ran in a dead machine")
	}
	time.Sleep(12 * time.Second) // longer than a quiet instance is left alone: it must not start by itself
	w.debian.phase(t, api.InstanceFailed, 0)
	began := time.Now()
	w.mustCLI(w.token, "instance", "start", "main", "--project", "one")
	w.debian.booted(t, "started after a crash", began)
	if out := w.debian.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("vecadd after the start: %s", out)
	}
}
