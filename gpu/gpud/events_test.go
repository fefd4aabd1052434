package gpud_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// TestEvents checks that every session of a vGPU, and none of another, sees the errors of
// its contexts that are errors of the GPU, in their order and at different times, and that
// only the newest are kept.
func TestEvents(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	n.put("b", gib, 0)
	faults, looks, other := n.dial("a"), n.dial("a"), n.dial("b")
	for _, r := range []abi.Result{abi.ErrInvalidValue, abi.ErrUnavailable, abi.ErrIllegalAddress, 1 << 30, abi.ErrMisaligned, abi.ErrAssert, abi.ErrECC} {
		faults.Faulted(r)
	}
	status := func(of interface {
		Status() (abi.VGPUStatusReply, error)
	}) abi.VGPUStatusReply {
		t.Helper()
		s, err := of.Status()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	eventually(t, "the last error is reported", func() bool { s := status(looks); return len(s.Events) > 0 && s.Events[len(s.Events)-1].XID == 48 })
	all := status(looks).Events
	for i, want := range []uint32{31, 13, 43, 48} {
		if len(all) != 4 || all[i].XID != want || all[i].PID != 42 || i > 0 && all[i].At <= all[i-1].At {
			t.Fatalf("events = %+v, want XIDs 31, 13, 43 and 48 of PID 42 at increasing times", all)
		}
	}
	if got := status(other).Events; len(got) != 0 {
		t.Errorf("events of another vGPU = %+v, want none", got)
	}
	for range 100 {
		faults.Faulted(abi.ErrIllegalAddress)
	}
	eventually(t, "the newest events replace the oldest", func() bool {
		got := status(looks).Events
		return len(got) == 16 && got[0].XID == 31 && got[0].At > all[3].At
	})
}
