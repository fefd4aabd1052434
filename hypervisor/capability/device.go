package capability

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"time"
)

// deviceTimeout is how long to wait for /dev/kvm where the processor supports
// KVM: at boot the kernel loads the KVM module at the same time as this daemon
// starts, and a result from too early would be cached until the next boot.
// pollInterval is the interval between checks.
const (
	deviceTimeout = 30 * time.Second
	pollInterval  = 100 * time.Millisecond
)

// awaitDevice waits for the device if the processor supports KVM. It returns
// false if the device does not exist by the limit, or if the processor does
// not support KVM.
func awaitDevice(ctx context.Context, cpuinfo, device string, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if _, err := os.Stat(device); err == nil {
			return true
		}
		if !virtualizes(cpuinfo) {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pollInterval):
		}
	}
}

// virtualizes reports whether the flags of the first processor in
// /proc/cpuinfo include VT-x or AMD-V. The kernel removes them where the
// firmware has disabled virtualization.
func virtualizes(cpuinfo string) bool {
	raw, err := os.ReadFile(cpuinfo)
	if err != nil {
		return false
	}
	s := bufio.NewScanner(bytes.NewReader(raw))
	for s.Scan() {
		if name, flags, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(name) == "flags" {
			words := strings.Fields(flags)
			return slices.Contains(words, "vmx") || slices.Contains(words, "svm")
		}
	}
	return false
}
