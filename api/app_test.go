package api

import (
	"strings"
	"testing"
)

func TestAppSpecs(t *testing.T) {
	good := AppSpec{DisplayName: "JupyterLab", Version: "1", Category: "workbench", Description: "Notebooks.\nIn the browser.", Image: "debian-13",
		ImageURL: "https://example.org/debian.qcow2", UserData: "#cloud-config\nruncmd:\n- \"\tx\"\n", Needs: AppNeeds{Vcpus: 1}, Ports: []AppPort{{Port: 8888, Name: "JupyterLab"}}}
	for what, c := range map[string]struct {
		spoil func(*AppSpec)
		field string
	}{
		"good":               {func(*AppSpec) {}, ""},
		"no name":            {func(s *AppSpec) { s.DisplayName = "" }, "spec.displayName"},
		"lines in a name":    {func(s *AppSpec) { s.DisplayName = "a\nb" }, "spec.displayName"},
		"no version":         {func(s *AppSpec) { s.Version = "" }, "spec.version"},
		"no image":           {func(s *AppSpec) { s.Image = "" }, "spec.image"},
		"an image's id":      {func(s *AppSpec) { s.Image = "img-0123456789ab" }, "spec.image"},
		"a file's URL":       {func(s *AppSpec) { s.ImageURL = "file:///etc/passwd" }, "spec.imageURL"},
		"a long word":        {func(s *AppSpec) { s.Category = strings.Repeat("x", 33) }, "spec.category"},
		"an icon":            {func(s *AppSpec) { s.Icon = AppIconNotebook }, ""},
		"an unknown icon":    {func(s *AppSpec) { s.Icon = "rocket" }, "spec.icon"},
		"an escape":          {func(s *AppSpec) { s.Notes = "\x1b[2J" }, "spec.notes"},
		"no UTF-8":           {func(s *AppSpec) { s.Description = "\xff" }, "spec.description"},
		"much user data":     {func(s *AppSpec) { s.UserData = strings.Repeat("x", 65537) }, "spec.userData"},
		"port 0":             {func(s *AppSpec) { s.Ports = []AppPort{{}} }, "spec.ports"},
		"many ports":         {func(s *AppSpec) { s.Ports = make([]AppPort, 17) }, "spec.ports"},
		"too many vcpus":     {func(s *AppSpec) { s.Needs.Vcpus = 257 }, "spec.needs.vcpus"},
		"negative memory":    {func(s *AppSpec) { s.Needs.MemoryBytes = -1 }, "spec.needs.memoryBytes"},
		"absurd VRAM":        {func(s *AppSpec) { s.Needs.VramBytes = 1 << 62 }, "spec.needs.vramBytes"},
		"absurd root volume": {func(s *AppSpec) { s.Needs.RootBytes = 1 << 62 }, "spec.needs.rootBytes"},
	} {
		s := good
		c.spoil(&s)
		bad(t, what, ValidateApp(s), c.field)
	}
}

func TestAppNeeds(t *testing.T) {
	n := AppNeeds{Vcpus: 2, MemoryBytes: 4, RootBytes: 8, VramBytes: 16}
	s := InstanceSpec{Vgpu: &VGPUSpec{VramBytes: 16}}
	f := FlavorSpec{Vcpus: 2, MemoryBytes: 4, RootBytes: 8}
	bad(t, "enough", n.Met(s, f), "")
	bad(t, "nothing is needed", AppNeeds{}.Met(InstanceSpec{}, FlavorSpec{}), "")
	bad(t, "a root volume of its own", n.Met(InstanceSpec{RootBytes: 9, Vgpu: s.Vgpu}, FlavorSpec{Vcpus: 2, MemoryBytes: 4}), "")
	bad(t, "a small root volume of its own", n.Met(InstanceSpec{RootBytes: 7, Vgpu: s.Vgpu}, f), "spec.rootBytes")
	bad(t, "few processors", n.Met(s, FlavorSpec{Vcpus: 1, MemoryBytes: 4, RootBytes: 8}), "spec.flavor")
	bad(t, "little memory", n.Met(s, FlavorSpec{Vcpus: 2, MemoryBytes: 3, RootBytes: 8}), "spec.flavor")
	bad(t, "no GPU", n.Met(InstanceSpec{}, f), "spec.vgpu.vramBytes")
}
