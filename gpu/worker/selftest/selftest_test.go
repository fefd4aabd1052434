package selftest_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker/selftest"
)

func steps(t *testing.T, o device.Options) (all []selftest.Step) {
	t.Helper()
	d, err := device.New(o)
	if err != nil {
		t.Fatal(err)
	}
	selftest.Run(d, func(s selftest.Step) { all = append(all, s) })
	_ = d.Close() // it may be lost
	return all
}

// TestSoundDevice checks that a working device passes all steps.
func TestSoundDevice(t *testing.T) {
	all := steps(t, device.Options{VRAM: 64 << 20})
	if len(all) != 7 {
		t.Errorf("%d steps, want 7: %v", len(all), all)
	}
	for _, s := range all {
		if s.Err != nil {
			t.Errorf("step %q failed: %v", s.Name, s.Err)
		}
	}
}

// TestBrokenDevices checks that a broken device fails at the step that detects
// it, which is the last one.
func TestBrokenDevices(t *testing.T) {
	for name, o := range map[string]device.Options{
		"a context in an address window":           {VRAM: 64 << 20, Fault: model.Lost},
		"a kernel runs":                            {VRAM: 64 << 20, Fault: model.ECC},
		"memory in the window, copied to and from": {VRAM: 1},
	} {
		all := steps(t, o)
		last := all[len(all)-1]
		if last.Name != name || last.Err == nil {
			t.Errorf("last step = %q, %v; want a failure of %q", last.Name, last.Err, name)
		}
		for _, s := range all[:len(all)-1] {
			if s.Err != nil {
				t.Errorf("earlier step %q failed: %v", s.Name, s.Err)
			}
		}
	}
}
