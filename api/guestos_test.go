package api

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOSOfAnInstance(t *testing.T) {
	for _, c := range []struct {
		name string
		spec InstanceSpec
		ok   bool
	}{
		{"none", InstanceSpec{}, true},
		{"Linux with a virtual GPU", InstanceSpec{OS: OSLinux, Vgpu: &VGPUSpec{VramBytes: 1 << 30, Pool: "default"}}, true},
		{"Windows", InstanceSpec{OS: OSWindows}, true},
		{"Windows with a virtual GPU", InstanceSpec{OS: OSWindows, Vgpu: &VGPUSpec{VramBytes: 1 << 30, Pool: "default"}}, false},
		{"unknown", InstanceSpec{OS: "beos"}, false},
	} {
		c.spec.Flavor, c.spec.Image, c.spec.Power = "flv-1", "img-1", PowerRunning
		err := ValidateInstance(c.spec)
		var e *Error
		if c.ok != (err == nil) || err != nil && (!errors.As(err, &e) || e.Field != "spec.os") {
			t.Errorf("%s: ValidateInstance = %v, want an error at spec.os: %v", c.name, err, !c.ok)
		}
	}
	if ChangeInstance(InstanceSpec{}, InstanceSpec{OS: OSWindows}) == nil {
		t.Error("ChangeInstance of the operating system succeeded, want an error")
	}
}

// TestMachineOfAnImage checks what the operating system of an image decides of a new
// instance, and what its spec decides instead.
func TestMachineOfAnImage(t *testing.T) {
	windows := ImageAbilities{OS: OSWindows}
	for name, c := range map[string]struct {
		spec InstanceSpec
		can  ImageAbilities
		want InstanceSpec
	}{
		"unknown":           {InstanceSpec{}, ImageAbilities{}, InstanceSpec{}},
		"linux":             {InstanceSpec{}, ImageAbilities{OS: OSLinux}, InstanceSpec{}},
		"other":             {InstanceSpec{}, ImageAbilities{OS: OSOther}, InstanceSpec{}},
		"windows":           {InstanceSpec{}, windows, InstanceSpec{OS: OSWindows, Firmware: FirmwareUEFI, SecureBoot: true, TPM: true}},
		"windows, as asked": {InstanceSpec{OS: OSWindows}, windows, InstanceSpec{OS: OSWindows, Firmware: FirmwareUEFI, SecureBoot: true, TPM: true}},
		"ephemeral":         {InstanceSpec{Ephemeral: true}, windows, InstanceSpec{Ephemeral: true, OS: OSWindows, Firmware: FirmwareUEFI, SecureBoot: true}},
		"with a BIOS":       {InstanceSpec{Firmware: FirmwareBIOS}, windows, InstanceSpec{OS: OSWindows, Firmware: FirmwareBIOS}},
		"with plain UEFI":   {InstanceSpec{Firmware: FirmwareUEFI}, windows, InstanceSpec{OS: OSWindows, Firmware: FirmwareUEFI}},
		"asked for linux":   {InstanceSpec{OS: OSLinux}, windows, InstanceSpec{OS: OSLinux}},
		"only asked for":    {InstanceSpec{OS: OSWindows}, ImageAbilities{}, InstanceSpec{OS: OSWindows}},
	} {
		got := c.spec.ForImage(c.can)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: spec for the image (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(got, c.spec.KeepMachine(got)); diff != "" {
			t.Errorf("%s: the same spec applied again (-want +got):\n%s", name, diff)
		}
	}
}
