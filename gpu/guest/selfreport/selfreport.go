// Package selfreport contains a shell script that reports the state of the vGPU inside a
// guest, and the parser of the script's output. The host runs the script through the guest
// agent; it is on the tools disc too. A guest may print anything, so the report is only used
// to explain a problem to the guest's owner. The host itself observes whether the vGPU works.
package selfreport

import (
	"bytes"
	_ "embed" // for Script
	"errors"
	"fmt"
	"strings"
)

// Script prints a report. It runs in any POSIX shell.
//
//go:embed report.sh
var Script string

const (
	// MaxSize is the maximum size of a report in bytes.
	MaxSize = 8 << 10
	// maxValue is the maximum length of a text value in characters.
	maxValue = 100
	header   = "basalt-report 1"
)

// Report is the state that a guest reports. A field is empty if its value is unknown.
type Report struct {
	Tools  string // version of the guest tools, if they are completely installed
	Kernel string // version of the running kernel
	Driver bool   // the driver virtio_gpu is bound to the device

	// Reasons why the driver is not bound.
	NoModeset bool   // the kernel's command line disables mode setting
	Blocked   string // "cmdline", or the file that keeps the module from being loaded
	DRM       Option // CONFIG_DRM of the kernel
	VirtioGPU Option // CONFIG_DRM_VIRTIO_GPU
	Module    Module

	Check  Check        // result of the last attempt to use the vGPU, which install.sh makes
	Change KernelChange // progress of replacing the kernel by one that has the driver
}

// Option is the value of an option of a kernel's configuration.
type Option string

// The values of Option.
const (
	Yes      Option = "y"
	AsModule Option = "m"
	No       Option = "n"
)

// Module is the state of the kernel module of the driver.
type Module string

// The values of Module.
const (
	ModuleLoaded  Module = "loaded"
	ModulePresent Module = "present" // it can be loaded
	ModuleBuiltIn Module = "builtin"
	ModuleMissing Module = "missing"
)

// Check is the result of an attempt to use the vGPU.
type Check string

// The values of Check.
const (
	CheckOK       Check = "ok"
	CheckMismatch Check = "mismatch" // library and host are incompatible
	CheckFailed   Check = "failed"
)

// KernelChange is the progress of install.sh in replacing the kernel.
type KernelChange string

// The values of KernelChange.
const (
	ChangeInstalling KernelChange = "installing"
	ChangeReboot     KernelChange = "reboot" // the kernel is installed and runs after the next boot
	ChangeOff        KernelChange = "off"    // the guest's owner has forbidden it
	ChangeFailed     KernelChange = "failed"
)

// ErrNoReport is the error for text that is not the output of this package's script.
var ErrNoReport = errors.New("not a report of a guest")

// Parse decodes the output of the script. It ignores unknown lines, which a newer script may
// print, and leaves fields with unknown values empty. The only error is ErrNoReport, for text
// that is too long or has another header.
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

// set stores the value of a line in its field.
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

// oneOf returns value if it is one of the known values, else "".
func oneOf[T ~string](value string, known ...T) T {
	for _, k := range known {
		if value == string(k) {
			return k
		}
	}
	return ""
}

// text returns the printable ASCII characters of value without blanks, at most limit. It
// removes the rest because the guest can write anything.
func text(value string, limit int) string {
	var out []byte
	for i := 0; i < len(value) && len(out) < limit; i++ {
		if c := value[i]; c > ' ' && c < 0x7f {
			out = append(out, c)
		}
	}
	return string(out)
}
