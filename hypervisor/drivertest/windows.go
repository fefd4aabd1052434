package drivertest

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// testWindows checks that a machine for Windows starts with the firmware that
// Windows 11 requires.
func testWindows(t *testing.T, b *bench) {
	d := b.domain(t)
	d.MemoryBytes, d.Windows = 256<<20, true
	d.Firmware, d.TPM = &hypervisor.Firmware{SecureBoot: true, NVRAM: filepath.Join(filepath.Dir(d.SerialLog), "nvram.fd")}, true
	if err := errors.Join(b.Define(b.ctx, d), b.Start(b.ctx, d.ID)); err != nil {
		t.Fatal(err)
	}
	b.until(t, "output of the firmware", func() bool {
		text, err := b.ConsoleLog(b.ctx, d.ID, 4096)
		return err == nil && len(text) > 0
	})
}
