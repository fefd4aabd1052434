package drivertest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// keepsState checks that a machine whose NVRAM file and TPM state exist already,
// such as those of the stopped machine of, from another node, starts with them and
// not with new ones. The files belong to root.
func (b *bench) keepsState(t *testing.T, of hypervisor.Domain) {
	t.Helper()
	variables, err := os.ReadFile(of.Firmware.NVRAM)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := os.ReadFile(hypervisor.TPMState(hypervisor.TPMStates, of.ID))
	if err != nil {
		t.Fatal(err)
	}
	d := b.domain(t)
	d.Firmware, d.TPM = &hypervisor.Firmware{SecureBoot: true, NVRAM: filepath.Join(filepath.Dir(d.SerialLog), "nvram.fd")}, true
	tpm := hypervisor.TPMState(hypervisor.TPMStates, d.ID)
	err = errors.Join(os.WriteFile(d.Firmware.NVRAM, variables, 0o600), os.MkdirAll(filepath.Dir(filepath.Dir(tpm)), 0o711), os.Mkdir(filepath.Dir(tpm), 0o700), os.WriteFile(tpm, keys, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Define(b.ctx, d), b.Load(b.ctx, d.ID)); err != nil {
		t.Fatal(err)
	}
	if has, err := os.ReadFile(d.Firmware.NVRAM); err != nil || !bytes.Equal(has, variables) {
		t.Errorf("NVRAM of a loaded machine: %v, %d bytes, want the %d bytes unchanged", err, len(has), len(variables))
	}
	// swtpm writes counters at each start. Seeds and keys of another TPM differ
	// everywhere.
	if has, err := os.ReadFile(tpm); err != nil || len(has) != len(keys) || same(has, keys) < len(keys)*9/10 {
		t.Errorf("TPM state of a loaded machine: %v, %d bytes, of which %d are as in the %d bytes that were there; want the same TPM", err, len(has), same(has, keys), len(keys))
	}
}

// same returns at how many places a and b have the same byte.
func same(a, b []byte) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n++
		}
	}
	return n
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
	b.keepsState(t, d)
	if err := b.Undefine(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.Firmware.NVRAM, state} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s exists after its machine was undefined (stat: %v)", path, err)
		}
	}
}
