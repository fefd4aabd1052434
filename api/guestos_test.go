package api

import (
	"errors"
	"testing"
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
