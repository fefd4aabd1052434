package drivertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// hostCPUs returns the CPUs that this process may run on, at least two, and whether they
// are those of the machine; a fake has as many as are needed.
func hostCPUs(t *testing.T, b *bench) []int {
	t.Helper()
	if !b.Slow {
		return []int{0, 1, 2}
	}
	cpus := allowed(t, "/proc/self/status")
	if len(cpus) < 2 {
		t.Skipf("this machine has CPUs %v, want two: one for the vCPU and one for all else", cpus)
	}
	return cpus
}

// allowed returns the CPUs that a thread may run on (proc(5), Cpus_allowed_list).
func allowed(t *testing.T, status string) []int {
	t.Helper()
	raw, err := os.ReadFile(status)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(raw)) {
		if list, ok := strings.CutPrefix(text, "Cpus_allowed_list:"); ok {
			cpus, err := api.ParseCPUs(list)
			if err != nil {
				t.Fatal(err)
			}
			return cpus
		}
	}
	t.Fatalf("%s has no Cpus_allowed_list", status)
	return nil
}

// threads returns, for each thread of the domain's QEMU, the CPUs that it may run on, by
// the thread's name.
func threads(t *testing.T, id api.InstanceID) map[string]string {
	t.Helper()
	all := map[string]string{}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		cmd, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(cmd), "guest="+hypervisor.DomainName(id)+",") {
			continue
		}
		tasks, err := filepath.Glob(filepath.Join(filepath.Dir(p), "task/*/comm"))
		if err != nil {
			t.Fatal(err)
		}
		for _, comm := range tasks {
			name, err := os.ReadFile(comm)
			if err != nil {
				continue // a thread that has ended
			}
			all[strings.TrimSpace(string(name))] = api.FormatCPUs(allowed(t, filepath.Join(filepath.Dir(comm), "status")))
		}
	}
	return all
}

// testCells checks that the vCPU of a machine with a CPU of its own runs there alone and
// its other threads on the shared ones; that a machine without moves off CPUs that are
// not shared any more while it runs; and that a machine with
// two NUMA cells boots.
func testCells(t *testing.T, b *bench) {
	cpus := hostCPUs(t, b)
	own, shared := cpus[len(cpus)-1], cpus[:len(cpus)-1]
	d := b.domain(t)
	d.Cells, d.SharedCPUs = []hypervisor.Cell{{CPUs: []int{own}, MemoryBytes: d.MemoryBytes}}, shared
	other := b.domain(t)
	b.boot(t, d)
	b.boot(t, other)
	if err := b.Pin(b.ctx, other.ID, hypervisor.Pinning{Shared: shared}); err != nil {
		t.Fatal(err)
	}
	if b.Slow {
		wantThreads(t, d.ID, fmt.Sprint(own), api.FormatCPUs(shared), true)
		wantThreads(t, other.ID, api.FormatCPUs(shared), api.FormatCPUs(shared), false)
	}
	if err := b.Pin(b.ctx, other.ID, hypervisor.Pinning{Shared: cpus}); err != nil {
		t.Fatal(err)
	}
	if b.Slow {
		wantThreads(t, other.ID, api.FormatCPUs(cpus), api.FormatCPUs(cpus), false)
	}
	if err := b.Pin(b.ctx, d.ID, hypervisor.Pinning{VCPUs: []int{own}, Shared: []int{own}}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Pin of a vCPU on a shared CPU = %v, want invalid", err)
	}
	if err := b.Pin(b.ctx, "ins-0000000b0404", hypervisor.Pinning{Shared: cpus}); err != nil {
		t.Errorf("Pin of a domain that does not exist = %v, want nil", err)
	}
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	two := b.domain(t) // its NUMA cells are in one of the node's, because few machines have two
	two.VCPUs, two.SharedCPUs = 2, cpus[:1]
	two.Cells = []hypervisor.Cell{{CPUs: []int{own}, MemoryBytes: 16 << 20}, {CPUs: []int{cpus[1]}, MemoryBytes: 48 << 20}}
	if own == cpus[1] {
		return // two CPUs: none is left for its other threads
	}
	b.boot(t, two)
}

// boot defines and starts the domain and waits for its guest.
func (b *bench) boot(t *testing.T, d hypervisor.Domain) {
	t.Helper()
	if err := b.Define(b.ctx, d); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.until(t, "the guest is ready", func() bool { return b.boots(d.ID) > 0 })
}

// wantThreads checks where the vCPUs and the other threads of a domain may run: all others
// of one that was started there; of one that was moved, those for I/O, because libvirt
// moves the rest only where it has the cgroup controller cpuset.
func wantThreads(t *testing.T, id api.InstanceID, vcpus, others string, started bool) {
	t.Helper()
	found := 0
	for name, got := range threads(t, id) {
		if strings.HasPrefix(name, "TC ") { // allocates memory during the start, and ends
			continue
		}
		want := others
		if strings.HasPrefix(name, "CPU ") { // "CPU 0/TCG", "CPU 0/KVM"
			want = vcpus
			found++
		} else if !started && !strings.HasPrefix(name, "IO iothread") {
			continue
		}
		if got != want {
			t.Errorf("thread %q of %s runs on CPUs %s, want %s", name, id, got, want)
		}
	}
	if found == 0 {
		t.Errorf("no vCPU of %s was found", id)
	}
}
