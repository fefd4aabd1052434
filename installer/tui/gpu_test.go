package tui

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/installer/answers"
)

func withGPUs(n int) *fake {
	f := newFake()
	for i := range n {
		f.gpus = append(f.gpus, hardware.GPU{Address: "0000:" + string(rune('1'+i)) + "5:00.0", Device: 0x2335})
	}
	return f
}

// TestNoGPUPage checks that a computer without an NVIDIA GPU is not asked.
func TestNoGPUPage(t *testing.T) {
	f := newFake()
	p := sit(t, f)
	p.toSummary()
	p.sees("Installation summary")
	p.seesNot("GPU")
	p.types("i")
	if d := f.installed[0].Answers.GPUDriver; d != nil {
		t.Errorf("driver requested = %+v, want none", d)
	}
}

// TestDriverIsOffByDefault checks that somebody who only presses Enter does not accept
// the license.
func TestDriverIsOffByDefault(t *testing.T) {
	f := withGPUs(1)
	p := sit(t, f)
	p.toSummary() // the page of the GPU
	p.screen("5-gpu")
	p.types("<enter>")
	p.sees("Installation summary")
	p.seesNot("GPU driver")
	p.types("i")
	if d := f.installed[0].Answers.GPUDriver; d != nil {
		t.Errorf("driver requested = %+v, want none", d)
	}
}

func TestDriverFromTheArchive(t *testing.T) {
	f := withGPUs(9)
	p := sit(t, f)
	p.toSummary()
	p.types("<right>", "<enter>", "<enter>")
	p.screen("6-summary-gpu")
	// Back, and decided otherwise.
	p.types("<esc>", "<up>", "<left>", "<enter>")
	p.seesNot("GPU driver")
	p.types("<esc>", "<right>", "<enter>", "<enter>", "i")
	if d := f.installed[0].Answers.GPUDriver; d == nil || d.From != nil {
		t.Errorf("driver requested = %+v, want it from the archive", d)
	}
}

func TestDriverFromAStick(t *testing.T) {
	f := withGPUs(9)
	f.packages = api.Errorf(api.CodeNotFound, "STICK:/nvidia has no nvidia-open-kernel-dkms_*.deb").WithHint("docs/gpu-nodes.md describes how to download the packages")
	p := sit(t, f)
	p.toSummary()
	p.types("<right>", "<enter>", "<right>", "<enter>", "nvidia", "<enter>")
	p.sees("names no file or directory")
	p.types("<ctrl+u>", "STICK:/nvidia", "<enter>")
	p.screen("5-gpu-stick")
	f.packages = nil
	p.types("<enter>")
	p.sees("NVIDIA's, license accepted", "packages     on /dev/disk/by-label/STICK:/nvidia")
	p.types("i")
	want := answers.Place{Device: "/dev/disk/by-label/STICK", Path: "nvidia"}
	if d := f.installed[0].Answers.GPUDriver; d == nil || d.From == nil || *d.From != want {
		t.Errorf("driver requested = %+v, want it from %s", d, want)
	}
}
