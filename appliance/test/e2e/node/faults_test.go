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

// guestProcessKilled: when a program in the guest is killed, its VRAM is freed at once, and
// other programs are unaffected.
func guestProcessKilled(t *testing.T, w *world) {
	victim, other := w.small.loop(t, "victim", 256), w.small.loop(t, "other", 64)
	if v, _ := w.vgpu(w.small.id); v.VRAMUsed < 320*mib {
		t.Errorf("VRAM of both programs = %d bytes, want at least 320 MiB", v.VRAMUsed)
	}
	w.small.sh(t, fmt.Sprintf("kill -9 %d", victim.pid))
	victim.gone(t, "guest process killed")
	if v, _ := w.vgpu(w.small.id); v.VRAMUsed >= 128*mib || !listed(v, other.pid) {
		t.Errorf("after the kill %d bytes are held by %+v, want less than 128 MiB, held by process %d", v.VRAMUsed, v.Processes, other.pid)
	}
	other.finish(t)
}

// workerKilled: the worker's guest process gets an error; other processes and the instance
// continue.
func workerKilled(t *testing.T, w *world) {
	victim, other := w.small.loop(t, "victim", 256), w.small.loop(t, "other", 64)
	kill(t, victim.worker, syscall.SIGKILL)
	victim.gone(t, "worker killed")
	code, out := victim.ended(t, time.Minute)
	if code == 0 || !strings.Contains(out, "CUDA_ERROR") {
		t.Errorf("guest process of the killed worker ended with %d, want a CUDA_ERROR: %s", code, out)
	}
	t.Logf("the guest process of a killed worker: %s", strings.TrimSpace(out))
	other.finish(t)
	if out := w.small.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("output of a new program on the same vGPU, want OK: %s", out)
	}
}

// outOfMemory: exceeding the vGPU's limit is an error of the program alone.
func outOfMemory(t *testing.T, w *world) {
	r, err := w.tenant.Exec(w.ctx, w.small.id, api.ExecRequest{Argv: []string{"/root/loop", "1100", "1"}})
	if err != nil || r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("1100 MiB on a vGPU of 1024 MiB: error %v, exit code %d, want CUDA_ERROR_OUT_OF_MEMORY: %s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	if out := w.small.sh(t, "/root/loop 900 1"); !strings.Contains(out, "OK") {
		t.Errorf("900 MiB on a vGPU of 1024 MiB: output %q, want OK", out)
	}
}

// gpudKilled: running programs finish, and each launch is counted once.
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
	time.Sleep(2 * time.Second) // a fixed time, in which the program launches kernels without gpud
	w.startGPUD()
	after, ok := w.vgpu(w.small.id)
	if !ok || after.Usage.GPUNanos < at.Usage.GPUNanos || after.Usage.Launches < at.Usage.Launches || after.Usage.VRAMByteSeconds < at.Usage.VRAMByteSeconds {
		t.Errorf("totals after the restart of gpud = %+v (vGPU found: %t), want at least %+v", after.Usage, ok, at.Usage)
	}
	took := patience.Until(t, time.Minute, "the worker is registered with gpud again", func() bool {
		v, _ := w.vgpu(w.small.id)
		return listed(v, l.pid) && v.VRAMUsed >= 128*mib
	})
	t.Logf("the worker registered again %v after gpud answered", took)
	launches := l.finish(t)
	patience.Until(t, time.Minute, "the worker to end", func() bool { v, ok := w.vgpu(w.small.id); return ok && len(v.Processes) == 0 })
	end, _ := w.vgpu(w.small.id)
	if got := end.Usage.Launches - before.Usage.Launches; got != launches {
		t.Errorf("gpud counted %d launches, want the program's %d", got, launches)
	}
}

// controlPlaneKilled: instance, vGPU and program continue, and the new basaltd finds them.
func controlPlaneKilled(t *testing.T, w *world) {
	l := w.small.loop(t, "steady", 128)
	qemu, backend := w.processOf(t, "qemu-system", w.small.id), w.processOf(t, "basalt-vgpu", w.small.id)
	was := w.small.get(t)
	w.killBasaltd()
	time.Sleep(time.Second) // a fixed time without basaltd
	w.startBasaltd()
	// Once it has recorded more usage, its agent has observed the instance and continued.
	recorded := w.recorded(t, w.small.id)[api.MeterVCPU]
	for range 2 {
		patience.Until(t, time.Minute, "more usage of the instance is recorded", func() bool {
			now := w.recorded(t, w.small.id)[api.MeterVCPU]
			more := now > recorded
			recorded = now
			return more
		})
	}
	in := w.small.phase(t, api.InstanceRunning, time.Minute)
	if in.Status.StartedAt == nil || !in.Status.StartedAt.Equal(*was.Status.StartedAt) || in.Status.LastError != "" || !vgpuAlive(in) {
		t.Errorf("status after the restart of basaltd = %+v, want %+v", in.Status, was.Status)
	}
	if w.processOf(t, "qemu-system", w.small.id) != qemu || w.processOf(t, "basalt-vgpu", w.small.id) != backend || !hasOneDomain(w) {
		t.Errorf("QEMU or backend was replaced, want the same processes and one domain; domains: %v", domains(w.id))
	}
	l.finish(t)
}

func hasOneDomain(w *world) bool { return len(w.domainsOf(w.small.id)) == 1 }

func vgpuAlive(in api.Instance) bool {
	for _, c := range in.Status.Conditions {
		if c.Type == api.ConditionGPUReady {
			return c.Reason != string(api.GPUBackendEnded)
		}
	}
	return false
}

// backendUpgraded: basalt-vgpu re-executes itself while a program runs.
func backendUpgraded(t *testing.T, w *world) {
	l := w.small.loop(t, "steady", 128)
	backend := w.processOf(t, "basalt-vgpu", w.small.id)
	kill(t, backend, syscall.SIGUSR2)
	took := patience.Until(t, time.Minute, "the backend has re-executed itself", func() bool {
		return len(w.of("basalt-vgpu", "--handover-fd")) == 1
	})
	t.Logf("backend upgraded in %v", took)
	if w.processOf(t, "basalt-vgpu", w.small.id) != backend {
		t.Error("backend is another process, want the same one after the upgrade")
	}
	other := w.small.loop(t, "other", 32) // a new process on the new program
	other.finish(t)
	l.finish(t)
	if in := w.small.get(t); !vgpuAlive(in) || in.Status.Phase != api.InstanceRunning {
		t.Errorf("status after the upgrade of the backend = %+v, want a running instance with a vGPU", in.Status)
	}
}

// backendKilled: the instance continues, its status reports the missing backend, and a restart
// repairs it.
func backendKilled(t *testing.T, w *world) {
	victim := w.small.loop(t, "victim", 256)
	qemu := w.processOf(t, "qemu-system", w.small.id)
	kill(t, w.processOf(t, "basalt-vgpu", w.small.id), syscall.SIGKILL)
	victim.gone(t, "basalt-vgpu killed")
	took := patience.Until(t, time.Minute, "the status reports the missing backend", func() bool { return !vgpuAlive(w.small.get(t)) })
	in := w.small.get(t)
	t.Logf("status after %v: %s", took, in.Status.LastError)
	if in.Status.Phase != api.InstanceRunning || !strings.Contains(in.Status.LastError, "restart") {
		t.Errorf("status with a killed backend = %+v, want a running instance with a hint to restart", in.Status)
	}
	if code, out := victim.ended(t, time.Minute); code == 0 || !strings.Contains(out, "CUDA_ERROR") {
		t.Errorf("guest process of the killed backend ended with %d, want a CUDA_ERROR: %s", code, out)
	}
	if w.processOf(t, "qemu-system", w.small.id) != qemu {
		t.Error("QEMU was replaced when the backend was killed, want the same process")
	}
	began := time.Now()
	w.mustCLI(w.token, "instance", "restart", "small", "--project", "one")
	patience.Until(t, 2*time.Minute, "the restart is done", func() bool {
		i := w.small.get(t)
		return i.Status.Restarts == i.Spec.Restarts && i.Status.Restarts > 0
	})
	t.Logf("stopped after %v", time.Since(began).Round(100*time.Millisecond))
	w.small.booted(t, "restarted", time.Now())
	if in := w.small.get(t); !vgpuAlive(in) || in.Status.LastError != "" {
		t.Errorf("status after the restart = %+v, want a vGPU and no error", in.Status)
	}
	if out := w.small.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("output of vecadd after the restart, want OK: %s", out)
	}
}

// qemuKilled: the instance is Failed with a reason, and its VRAM is free; a start repairs it.
func qemuKilled(t *testing.T, w *world) {
	victim := w.small.loop(t, "victim", 256)
	kill(t, w.processOf(t, "qemu-system", w.small.id), syscall.SIGKILL)
	victim.gone(t, "QEMU killed")
	w.crashed = time.Now()
	in := w.small.phase(t, api.InstanceFailed, time.Minute)
	t.Logf("error in the status: %s", in.Status.LastError)
	if !strings.Contains(in.Status.LastError, "ended unexpectedly") || in.Status.StartedAt != nil {
		t.Errorf("status after QEMU was killed = %+v, want \"ended unexpectedly\" and no start time", in.Status)
	}
	patience.Until(t, time.Minute, "the backend has ended", func() bool { return len(w.of("basalt-vgpu", w.small.id)) == 0 })
	_, err := w.tenant.Exec(w.ctx, w.small.id, api.ExecRequest{Argv: []string{"true"}})
	if err == nil {
		t.Error("exec in an instance without QEMU succeeded, want an error")
	}
}

// startedAfterCrash: a crashed instance remains Failed until it is started by a user. Other
// parts of the test run meanwhile.
func startedAfterCrash(t *testing.T, w *world) {
	const quiet = 12 * time.Second // a fixed time, longer than the interval between two reconciliations of an idle instance
	time.Sleep(time.Until(w.crashed.Add(quiet)))
	w.small.phase(t, api.InstanceFailed, 0)
	began := time.Now()
	w.mustCLI(w.token, "instance", "start", "small", "--project", "one")
	w.small.booted(t, "started after a crash", began)
	if out := w.small.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("output of vecadd after the start, want OK: %s", out)
	}
}
