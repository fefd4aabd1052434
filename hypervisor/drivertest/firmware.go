package drivertest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// keepsVariables checks that a machine whose NVRAM file exists already, such
// as one from another node, starts with those variables and not with new ones.
func (b *bench) keepsVariables(t *testing.T, of string) {
	t.Helper()
	had, err := os.ReadFile(of)
	if err != nil {
		t.Fatal(err)
	}
	d := b.domain(t)
	d.Firmware = &hypervisor.Firmware{SecureBoot: true, NVRAM: filepath.Join(filepath.Dir(d.SerialLog), "nvram.fd")}
	if err := os.WriteFile(d.Firmware.NVRAM, had, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Define(b.ctx, d), b.Load(b.ctx, d.ID)); err != nil {
		t.Fatal(err)
	}
	if has, err := os.ReadFile(d.Firmware.NVRAM); err != nil || !bytes.Equal(has, had) {
		t.Errorf("NVRAM of a loaded machine: %v, %d bytes, want the %d bytes unchanged", err, len(has), len(had))
	}
}

// testFirmware checks that a machine boots by UEFI with Secure Boot and a TPM,
// has its own variables, and that Undefine deletes them.
func testFirmware(t *testing.T, b *bench) {
	a, err := b.Abilities(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if want := (hypervisor.FirmwareAbilities{UEFI: true, SecureBoot: true, TPM: true}); a.Firmware != want {
		t.Fatalf("firmware abilities = %+v, want %+v (packages ovmf, swtpm, swtpm-tools)", a.Firmware, want)
	}
	d := b.domain(t)
	d.MemoryBytes = 256 << 20
	d.Firmware, d.TPM = &hypervisor.Firmware{SecureBoot: true, NVRAM: filepath.Join(filepath.Dir(d.SerialLog), "nvram.fd")}, true
	if err := b.Define(b.ctx, d); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	// The boot sector is for a BIOS: OVMF searches for a loader, and reports that
	// on the console.
	b.until(t, "output of the firmware", func() bool {
		text, err := b.ConsoleLog(b.ctx, d.ID, 4096)
		return err == nil && len(text) > 0
	})
	if !b.Slow {
		return
	}
	if _, err := os.Stat(d.Firmware.NVRAM); err != nil {
		t.Errorf("the machine's UEFI variables: %v", err)
	}
	state := filepath.Join("/var/lib/libvirt/swtpm", hypervisor.UUID(d.ID))
	if _, err := os.Stat(state); err != nil {
		t.Errorf("the state of its TPM: %v", err)
	}
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.keepsVariables(t, d.Firmware.NVRAM)
	if err := b.Undefine(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.Firmware.NVRAM, state} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s exists after its machine was undefined (stat: %v)", path, err)
		}
	}
}
