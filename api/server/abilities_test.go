package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestInstanceWarnings checks that an instance with a vGPU and an image that does not
// support one is created with a warning, and that there is no warning without a vGPU or
// for an image whose abilities are unknown.
func TestInstanceWarnings(t *testing.T) {
	w := newWorld(t)
	make := func(name, image string, vgpu *api.VGPUSpec, app string) []api.InstanceWarning {
		t.Helper()
		i := must(t, ret(client.Of[api.Instance](w.op).Create(t.Context(), api.Instance{Meta: api.Meta{Name: name, Project: w.web},
			Spec: api.InstanceSpec{Flavor: "small", Image: api.ImageID(image), App: api.AppID(app), Vgpu: vgpu, UserData: "#cloud-config\n"}}))).v
		// The warning is only in the response to the creation, not stored.
		if again := must(t, ret(client.Of[api.Instance](w.op).Get(t.Context(), i.Meta.ID, client.Query{}))).v; len(again.Warnings) > 0 {
			t.Errorf("instance %s read again has warnings %+v, want none", name, again.Warnings)
		}
		return i.Warnings
	}
	image := func(name string, can api.ImageAbilities) {
		must(t, ret(client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: name}, Spec: api.ImageSpec{Format: "qcow2", Public: true, Abilities: can}})))
	}
	image("cloud", api.ImageAbilities{Vgpu: api.VGPUNewKernel, GuestAgent: api.AgentAbsent})
	image("router", api.ImageAbilities{Vgpu: api.VGPUUnsupported})
	image("ordinary", api.ImageAbilities{Vgpu: api.VGPUSupported})
	image("unsaid", api.ImageAbilities{})
	must(t, ret(client.Of[api.App](w.op).Create(t.Context(), api.App{Meta: api.Meta{Name: "bench"},
		Spec: api.AppSpec{DisplayName: "Bench", Version: "1", Image: "unsaid", Abilities: api.ImageAbilities{Vgpu: api.VGPUUnsupported}}})))
	gpu := &api.VGPUSpec{VramBytes: 1 << 30}
	for _, c := range []struct {
		name, image, app string
		vgpu             *api.VGPUSpec
		want             string
	}{
		{"a", "cloud", "", gpu, api.WarnVGPUNewKernel},
		{"b", "router", "", gpu, api.WarnVGPUUnsupported},
		{"c", "router", "", nil, ""},
		{"d", "ordinary", "", gpu, ""},
		{"e", "unsaid", "", gpu, ""},
		{"f", "", "bench", gpu, api.WarnVGPUUnsupported}, // the app's own image is known
		{"g", "ordinary", "bench", gpu, ""},              // but not another image
	} {
		got := make(c.name, c.image, c.vgpu, c.app)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || string(got[0].Code) != c.want || got[0].Message == "") {
			t.Errorf("warnings for image %s, app %q, vGPU %v = %+v, want code %q", c.image, c.app, c.vgpu != nil, got, c.want)
		}
	}
	_, err := client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: "odd"}, Spec: api.ImageSpec{Format: "raw", Abilities: api.ImageAbilities{Vgpu: "perhaps"}}})
	wantErr(t, err, api.CodeInvalid, "spec.abilities.vgpu")
}

// TestMachineOfAnImage checks that a new instance has the machine that the operating
// system of its image needs, unless its spec has another, and that a file that leaves
// these fields out can be applied again.
func TestMachineOfAnImage(t *testing.T) {
	w := newWorld(t)
	for name, can := range map[string]api.ImageAbilities{"windows": {OS: api.OSWindows, OSName: "Windows Server 2025"}, "linux": {OS: api.OSLinux}, "unsaid": {}} {
		must(t, ret(client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: name}, Spec: api.ImageSpec{Format: "qcow2", Public: true, Abilities: can}})))
	}
	must(t, ret(client.Of[api.App](w.op).Create(t.Context(), api.App{Meta: api.Meta{Name: "desktop"},
		Spec: api.AppSpec{DisplayName: "Desktop", Version: "1", Image: "unsaid", Abilities: api.ImageAbilities{OS: api.OSWindows}}})))
	instances := client.Of[api.Instance](w.op)
	asked := func(name string, s api.InstanceSpec) api.Instance {
		s.Flavor = "small"
		return api.Instance{Meta: api.Meta{Name: name, Project: w.web}, Spec: s}
	}
	type machine struct {
		os              api.GuestOS
		firmware        api.Firmware
		secureBoot, tpm bool
	}
	whole := machine{api.OSWindows, api.FirmwareUEFI, true, true}
	for name, c := range map[string]struct {
		spec api.InstanceSpec
		want machine
	}{
		"a": {api.InstanceSpec{Image: "windows"}, whole},
		"b": {api.InstanceSpec{Image: "windows", Firmware: api.FirmwareBIOS}, machine{api.OSWindows, api.FirmwareBIOS, false, false}},
		"c": {api.InstanceSpec{Image: "linux"}, machine{}},
		"d": {api.InstanceSpec{Image: "unsaid"}, machine{}},
		"e": {api.InstanceSpec{App: "desktop"}, whole},                     // the app's own image is known
		"f": {api.InstanceSpec{App: "desktop", Image: "linux"}, machine{}}, // but not another image
	} {
		in := must(t, ret(instances.Create(t.Context(), asked(name, c.spec)))).v
		has := func(in api.Instance) machine {
			return machine{in.Spec.OS, in.Spec.Firmware, in.Spec.SecureBoot, in.Spec.TPM}
		}
		if has(in) != c.want {
			t.Errorf("%s: machine of a new instance = %+v, want %+v", name, has(in), c.want)
		}
		again := asked(name, c.spec)
		again.Meta, again.Spec.CPU = in.Meta, api.CPUHost
		changed, err := instances.Update(t.Context(), in.Meta.ID, again)
		if err != nil || has(changed) != c.want || changed.Spec.CPU != api.CPUHost {
			t.Errorf("%s: change that leaves its machine out = %+v, %v; want another processor only", name, changed.Spec, err)
		}
	}
	_, err := instances.Create(t.Context(), asked("gpu", api.InstanceSpec{Image: "windows", Vgpu: &api.VGPUSpec{VramBytes: 1 << 30}}))
	wantErr(t, err, api.CodeInvalid, "spec.os")
	for field, can := range map[string]api.ImageAbilities{"spec.abilities.os": {OS: "beos"}, "spec.abilities.osName": {OSName: "a\nb"}} {
		_, err := client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: "odd"}, Spec: api.ImageSpec{Format: "raw", Abilities: can}})
		wantErr(t, err, api.CodeInvalid, field)
	}
}
