package api

import (
	"errors"
	"testing"
)

func TestFirmwareOfAnInstance(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  InstanceSpec
		field string // the invalid field; empty: none
	}{
		{"none", InstanceSpec{}, ""},
		{"all", InstanceSpec{Firmware: FirmwareUEFI, SecureBoot: true, TPM: true}, ""},
		{"unknown", InstanceSpec{Firmware: "coreboot"}, "spec.firmware"},
		{"Secure Boot with a BIOS", InstanceSpec{Firmware: FirmwareBIOS, SecureBoot: true}, "spec.secureBoot"},
		{"a TPM with a BIOS", InstanceSpec{TPM: true}, "spec.tpm"},
		{"a TPM that would be made anew", InstanceSpec{Firmware: FirmwareUEFI, TPM: true, Ephemeral: true}, "spec.tpm"},
	} {
		c.spec.Flavor, c.spec.Image, c.spec.Power = "flv-1", "img-1", PowerRunning
		err := ValidateInstance(c.spec)
		var e *Error
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &e) || e.Field != c.field) {
			t.Errorf("%s: ValidateInstance = %v, want an error at %q", c.name, err, c.field)
		}
	}
	was := InstanceSpec{Firmware: FirmwareUEFI}
	for _, s := range []InstanceSpec{{}, {Firmware: FirmwareUEFI, SecureBoot: true}, {Firmware: FirmwareUEFI, TPM: true}} {
		if ChangeInstance(was, s) == nil {
			t.Errorf("ChangeInstance from %+v to %+v succeeded, want an error", was, s)
		}
	}
	if Movable(Instance{Spec: InstanceSpec{TPM: true}}, Volume{Assignment: VolumeAssignment{Pool: PoolCeph}}) {
		t.Error("Movable of an instance with a TPM = true, want false: the TPM's state stays on its node")
	}
}
