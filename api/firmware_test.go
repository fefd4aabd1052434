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
}

// TestMovableWithTPM checks that an instance with a TPM is movable only when the TPM's
// state is stored beside its present root volume.
func TestMovableWithTPM(t *testing.T) {
	root := Volume{Meta: Meta{ID: "vol-1"}, Assignment: VolumeAssignment{Pool: PoolCeph}}
	for _, c := range []struct {
		name      string
		in        Instance
		root      Volume
		want, may bool
	}{
		{"state on the node", Instance{Spec: InstanceSpec{TPM: true}}, root, false, true},
		{"state beside the root volume", Instance{Spec: InstanceSpec{TPM: true}, Status: InstanceStatus{StateVolume: "vol-1"}}, root, true, true},
		{"state beside an earlier root volume", Instance{Spec: InstanceSpec{TPM: true}, Status: InstanceStatus{StateVolume: "vol-0"}}, root, false, true},
		{"no root volume known", Instance{Spec: InstanceSpec{TPM: true}}, Volume{}, false, false},
		{"local", Instance{Spec: InstanceSpec{TPM: true}, Status: InstanceStatus{StateVolume: "vol-1"}}, Volume{Meta: Meta{ID: "vol-1"}, Assignment: VolumeAssignment{Pool: PoolLocal}}, false, false},
		{"no TPM", Instance{}, root, true, true},
	} {
		if got, may := Movable(c.in, c.root), MayBecomeMovable(c.in, c.root); got != c.want || may != c.may {
			t.Errorf("%s: Movable = %v, MayBecomeMovable = %v, want %v and %v", c.name, got, may, c.want, c.may)
		}
	}
}
