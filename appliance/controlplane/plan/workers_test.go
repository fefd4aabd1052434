package plan

import (
	"strings"
	"testing"
)

// The memory of a vGPU's workers is the node's: three instances of 1 GiB with a vGPU do
// not fit on a node of 4 GiB, three without one do.
func TestWorkersTakeMemory(t *testing.T) {
	for vram, want := range map[int64]int{0: 4, gib: 2} {
		s := cluster().node("n1", 4*gib).gpu("g1", "n1", 16*gib)
		for _, id := range []string{"a", "b", "c", "d"} {
			s.instance(id, "flv-1", vram, 0)
		}
		settle(t, s)
		placed, why := 0, ""
		for _, in := range s.Instances {
			if in.Assignment.Node != "" {
				placed++
			} else {
				why = in.Assignment.Reason
			}
		}
		if placed != want {
			t.Errorf("placed instances with %d bytes of VRAM each = %d of 4, want %d", vram, placed, want)
		}
		if vram > 0 && !strings.Contains(why, "1 GiB of RAM requested and 512 MiB for GPU workers, 1 GiB of 4 GiB free") {
			t.Errorf("reason of the others = %q, want it to include the memory of GPU workers", why)
		}
	}
}

// A node that was filled before the workers' memory was counted keeps its instances,
// also when they are resized without more memory; it gets nothing new.
func TestFullNodeKeepsItsInstances(t *testing.T) {
	s := cluster().node("n1", 2*gib).gpu("g1", "n1", 16*gib)
	s.instance("a", "flv-1", gib, 10).instance("b", "flv-1", gib, 10)
	for id, in := range s.Instances {
		in.Assignment.Node, in.Assignment.Generation, in.Assignment.Epoch = "n1", 1, 1
		in.Assignment.Gpu, in.Assignment.VgpuVramBytes, in.Assignment.VgpuSharePercent = "g1", gib, 10
		in.Assignment.Vcpus, in.Assignment.MemoryBytes, in.Assignment.RootVolume = 2, gib, "vol-a"
		in.Status.Phase, in.Status.Node, in.Status.Epoch = "Running", "n1", 1
		s.Instances[id] = in
	}
	settle(t, s)
	for id, in := range s.Instances {
		if a := in.Assignment; a.Node != "n1" || a.Release || a.Reason != "" {
			t.Errorf("assignment of %s = %+v, want node n1 and no reason", id, a)
		}
	}
	a := s.Instances["a"]
	a.Meta.Generation, a.Spec.Vgpu.SharePercent, a.Status.Phase = 2, 20, "Stopped"
	s.Instances["a"] = a
	s.instance("new", "flv-1", 0, 0)
	settle(t, s)
	if got := s.Instances["a"].Assignment; got.Node != "n1" || got.VgpuSharePercent != 20 || got.Generation != 2 {
		t.Errorf("assignment of a = %+v, want its new share on node n1", got)
	}
	if got := s.Instances["new"].Assignment; got.Node != "" {
		t.Errorf("assignment of new = %+v, want none: the node is full", got)
	}
}
