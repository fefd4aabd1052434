package api

import (
	"strings"
	"unicode/utf8"
)

// Limits of an app.
const (
	maxAppPorts = 16
	maxAppText  = 2000
	maxAppWord  = 32
	maxAppTitle = 100
)

// AppIcon is the pictogram of an app in the catalogue; empty means cube.
type AppIcon string

// Icons.
const (
	AppIconServer   AppIcon = "server"
	AppIconNotebook AppIcon = "notebook"
	AppIconFlask    AppIcon = "flask"
	AppIconChat     AppIcon = "chat"
	AppIconPicture  AppIcon = "picture"
	AppIconChart    AppIcon = "chart"
	AppIconDatabase AppIcon = "database"
	AppIconCube     AppIcon = "cube"
)

// ValidateApp checks a spec.
func ValidateApp(s AppSpec) error {
	var bad faults
	if s.DisplayName == "" {
		bad.note(invalid("spec.displayName", "a display name is required"))
	}
	if s.Version == "" {
		bad.note(invalid("spec.version", "a version is required").WithHint("change it whenever the app changes, e.g. 1, 2 or 2026-11"))
	}
	if err := ValidateName(s.Image); err != nil {
		bad.note(invalid("spec.image", "%q is not a valid image name", clip(s.Image)).WithHint("the name of an existing or future public image, e.g. debian-13"))
	}
	bad.note(defaultUser(s.DefaultUser))
	if s.ImageURL != "" {
		if err := ValidateImage(ImageSpec{Format: FormatQCOW2, URL: s.ImageURL}); err != nil {
			bad.note(invalid("spec.imageURL", "%q is not a valid URL of an image", clip(s.ImageURL)).WithHint("want http:// or https://"))
		}
	}
	s.Abilities.validate(&bad)
	bad.note(oneOf("spec.icon", s.Icon, "", AppIconServer, AppIconNotebook, AppIconFlask, AppIconChat, AppIconPicture, AppIconChart, AppIconDatabase, AppIconCube))
	for _, t := range []struct {
		field, text string
		most        int
		lines       bool
	}{
		{"spec.displayName", s.DisplayName, maxAppTitle, false}, {"spec.version", s.Version, maxAppWord, false},
		{"spec.category", s.Category, maxAppWord, false},
		{"spec.description", s.Description, maxAppText, true}, {"spec.notes", s.Notes, maxAppText, true},
		{"spec.userData", s.UserData, maxUserData, true},
	} {
		shown := t.text
		if t.lines {
			shown = strings.NewReplacer("\n", "", "\t", "").Replace(shown)
		}
		if len(t.text) > t.most || !utf8.ValidString(t.text) || hasControl(shown) {
			bad.note(invalid(t.field, "must have at most %d bytes of text", t.most))
		}
	}
	if len(s.Ports) > maxAppPorts {
		bad.note(invalid("spec.ports", "has %d ports, want at most %d", len(s.Ports), maxAppPorts))
		return bad.err()
	}
	for _, p := range s.Ports {
		if len(p.Name) > maxAppTitle || hasControl(p.Name) {
			bad.note(invalid("spec.ports", "%q is not a valid port name", clip(p.Name)))
		}
		bad.note(between("spec.ports", p.Port, 1, 65535, ""))
	}
	n := s.Needs
	bad.note(
		between("spec.needs.vcpus", n.Vcpus, 0, MaxVCPUs, ""),
		between("spec.needs.memoryBytes", n.MemoryBytes, 0, MaxMemoryBytes, bytesUnit),
		between("spec.needs.rootBytes", n.RootBytes, 0, MaxVolumeBytes, bytesUnit),
		between("spec.needs.vramBytes", n.VramBytes, 0, MaxVRAMBytes, bytesUnit))
	return bad.err()
}

// Fill returns s with the fields that it leaves empty taken from the app.
func (a AppSpec) Fill(s InstanceSpec) InstanceSpec {
	if s.Image == "" {
		s.Image = ImageID(a.Image)
	}
	if s.UserData == "" {
		s.UserData = a.UserData
	}
	return s
}

// Met returns nil if an instance of flavor f meets the app's needs, and otherwise an
// error for the field to change.
func (n AppNeeds) Met(s InstanceSpec, f FlavorSpec) error {
	root := s.RootBytes
	if root == 0 {
		root = f.RootBytes
	}
	var vram int64
	if s.Vgpu != nil {
		vram = s.Vgpu.VramBytes
	}
	for _, c := range []struct {
		field, what, hint string
		has, needs        int64
	}{
		{"spec.flavor", "virtual CPUs", "choose a larger flavor", f.Vcpus, n.Vcpus},
		{"spec.flavor", "bytes of memory", "choose a larger flavor", f.MemoryBytes, n.MemoryBytes},
		{"spec.rootBytes", "bytes of root volume", "request a larger one, or choose a larger flavor", root, n.RootBytes},
		{"spec.vgpu.vramBytes", "bytes of VRAM", "attach a virtual GPU with at least that much", vram, n.VramBytes},
	} {
		if c.has < c.needs {
			return invalid(c.field, "the app needs %d %s, got %d", c.needs, c.what, c.has).WithHint("%s", c.hint)
		}
	}
	return nil
}
