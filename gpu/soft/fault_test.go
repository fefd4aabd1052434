package soft_test

import (
	"errors"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// faulty returns a rig on a device with a fault, and a word that a kernel can set.
func faulty(t *testing.T, f model.Fault, gate *countingGate) (r *rig, word uint64) {
	r, at := meetRig(t, device.Options{SMs: 1, Fault: f}, 1, gate)
	return r, at(0)
}

// TestFaultECC checks that an uncorrectable memory error ends a kernel and poisons its
// context.
func TestFaultECC(t *testing.T) {
	r, word := faulty(t, model.ECC, &countingGate{})
	done := make(chan error, 1)
	r.meet(nil, word, word, func(err error) { done <- err })
	if err := patience.Receive(t, time.Minute, "the kernel fails", done); !errors.Is(err, abi.ErrECC) {
		t.Errorf("error of the kernel = %v, want %v", err, abi.ErrECC)
	}
	if _, err := r.c.MemAlloc(4); !errors.Is(err, abi.ErrECC) {
		t.Errorf("MemAlloc after the kernel: error %v, want %v", err, abi.ErrECC)
	}
}

func TestFaultLost(t *testing.T) {
	d, err := device.New(device.Options{VRAM: 64 << 20, Fault: model.Lost})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := d.NewContext(0, nil, testWindow); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("NewContext on a lost GPU: error %v, want %v", err, abi.ErrUnavailable)
	}
}

// TestFaultHang checks that a kernel that hangs occupies the device until its context
// is destroyed.
func TestFaultHang(t *testing.T) {
	gate := &countingGate{}
	r, word := faulty(t, model.Hang, gate)
	done := make(chan error, 1)
	r.meet(nil, word, word, func(err error) { done <- err })
	patience.Until(t, time.Minute, "the kernel has done its work and stays on the device", func() bool {
		got, err := r.c.StreamCreate(1, 0)
		if err != nil {
			t.Fatal(err)
		}
		out, copied := make([]byte, 4), make(chan error, 1)
		if err := r.c.CopyDtoH(got, out, word, func(err error) { copied <- err }); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-copied, r.c.StreamDestroy(got)); err != nil {
			t.Fatal(err)
		}
		return out[0] == 1
	})
	if err := r.c.StreamQuery(nil); !errors.Is(err, abi.ErrNotReady) {
		t.Errorf("StreamQuery while a kernel hangs: error %v, want %v", err, abi.ErrNotReady)
	}
	if err := r.c.Destroy(); err != nil {
		t.Fatal(err)
	}
	if err := patience.Receive(t, time.Minute, "the kernel fails", done); err == nil {
		t.Error("error of the kernel that hung = nil after Destroy, want one")
	}
	if gate.inside != 0 {
		t.Errorf("%d kernels are inside the gate after Destroy, want none", gate.inside)
	}
}

// TestFaultSlow checks that kernels of a slow or throttled GPU have the right results
// and take longer, and that their time is counted.
func TestFaultSlow(t *testing.T) {
	for _, f := range []model.Fault{model.Slow, model.Throttled} {
		gate := &countingGate{}
		r, word := faulty(t, f, gate)
		began := time.Now()
		r.meet(nil, word, word, nil)
		r.expect(word, 1, func(int) uint32 { return 1 })
		wall := time.Since(began)
		gate.mu.Lock()
		if gate.launches != 1 || gate.busy <= 0 || gate.busy > wall {
			t.Errorf("%s: gate counted %d launches and %v of device time, want 1 and more than 0 but at most %v", f, gate.launches, gate.busy, wall)
		}
		gate.mu.Unlock()
	}
}
