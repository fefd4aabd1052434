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

// How long /dev/kvm may be missing where the processor could have it: when the
// machine starts, the kernel loads KVM's module beside us, and an answer that
// was got too early would hold until the next start.
const (
	limitDevice = 30 * time.Second
	lookPause   = 100 * time.Millisecond
)

// awaitDevice waits for the device if the processor has what KVM needs; false
// when it is not there by the limit, or not to come.
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
		case <-time.After(lookPause):
		}
	}
}

// virtualizes is whether the first processor's flags, as /proc/cpuinfo shows
// them, name VT-x or AMD-V. The kernel takes them away where the firmware has
// turned them off.
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
