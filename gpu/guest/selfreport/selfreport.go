// Package selfreport is what a guest tells of itself about its vGPU: a shell script that
// its host has it run through the guest agent, and that is on the tools disc too, and the
// reader of what the script prints. A guest may print anything, so nothing but the cause
// that its owner is told depends on it: whether the vGPU works is seen by its host.
package selfreport

import (
	"bytes"
	_ "embed" // of the script
	"errors"
	"fmt"
	"strings"
)

// Script prints a report; it is for any POSIX shell.
//
//go:embed report.sh
var Script string

const (
	// MaxSize of a report, in bytes.
	MaxSize = 8 << 10
	// maxValue of a line of it that is text, in characters.
	maxValue = 100
	header   = "basalt-report 1"
)

// Report is what a guest says. A field that is empty is not known.
type Report struct {
	Tools  string // version of the guest tools, once they are installed completely
	Kernel string // version of the kernel that runs
	Driver bool   // virtio_gpu has taken the device

	// Why it has not.
	NoModeset bool   // the kernel was told not to set modes
	Blocked   string // "cmdline", or the file that keeps the module from being loaded
	DRM       Option // CONFIG_DRM of the kernel
	VirtioGPU Option // CONFIG_DRM_VIRTIO_GPU
	Module    Module

	Check  Check        // how the last try to use the vGPU ended, which install.sh makes
	Change KernelChange // where the kernel is being replaced by one that has the driver
}

// Option of a kernel's configuration.
type Option string

// Options.
const (
	Yes      Option = "y"
	AsModule Option = "m"
	No       Option = "n"
)

// Module is where the kernel's driver is.
type Module string

// Modules.
const (
	ModuleLoaded  Module = "loaded"
	ModulePresent Module = "present" // it can be loaded
	ModuleBuiltIn Module = "builtin"
	ModuleMissing Module = "missing"
)

// Check is how a try to use the vGPU ended.
type Check string

// Checks.
const (
	CheckOK       Check = "ok"
	CheckMismatch Check = "mismatch" // library and host do not fit together
	CheckFailed   Check = "failed"
)

// KernelChange is where install.sh is in having another kernel.
type KernelChange string

// Kernel changes.
const (
	ChangeInstalling KernelChange = "installing"
	ChangeReboot     KernelChange = "reboot" // it is installed and runs after the next boot
	ChangeOff        KernelChange = "off"    // its owner does not want it
	ChangeFailed     KernelChange = "failed"
)

// ErrNoReport is the error for what no script of this package has printed.
var ErrNoReport = errors.New("not a report of a guest")

// Parse reads what the script has printed. Lines that it does not know are of a newer
// script, and values that it does not know are none.
func Parse(out []byte) (r Report, err error) {
	if len(out) > MaxSize {
		return Report{}, fmt.Errorf("%w: %d bytes, want at most %d", ErrNoReport, len(out), MaxSize)
	}
	first, rest, _ := bytes.Cut(out, []byte("\n"))
	if string(first) != header {
		return Report{}, fmt.Errorf("%w: it starts with %.40q", ErrNoReport, first)
	}
	for line := range bytes.Lines(rest) {
		key, value, found := strings.Cut(strings.TrimRight(string(line), "\n"), "=")
		if found {
			r.set(key, value)
		}
	}
	return r, nil
}

func (r *Report) set(key, value string) {
	switch key {
	case "tools":
		r.Tools = text(value, 40)
	case "kernel":
		r.Kernel = text(value, maxValue)
	case "driver":
		r.Driver = value == "bound"
	case "modeset":
		r.NoModeset = value == "off"
	case "blocked":
		if r.Blocked = text(value, maxValue); r.Blocked == "no" {
			r.Blocked = ""
		}
	case "drm":
		r.DRM = oneOf(value, Yes, AsModule, No)
	case "virtiogpu":
		r.VirtioGPU = oneOf(value, Yes, AsModule, No)
	case "module":
		r.Module = oneOf(value, ModuleLoaded, ModulePresent, ModuleBuiltIn, ModuleMissing)
	case "check":
		r.Check = oneOf(value, CheckOK, CheckMismatch, CheckFailed)
	case "kernelchange":
		r.Change = oneOf(value, ChangeInstalling, ChangeReboot, ChangeOff, ChangeFailed)
	}
}

func oneOf[T ~string](value string, known ...T) T {
	for _, k := range known {
		if value == string(k) {
			return k
		}
	}
	return ""
}

// text keeps what is printable ASCII without blanks: the guest wrote it.
func text(value string, limit int) string {
	var out []byte
	for i := 0; i < len(value) && len(out) < limit; i++ {
		if c := value[i]; c > ' ' && c < 0x7f {
			out = append(out, c)
		}
	}
	return string(out)
}
