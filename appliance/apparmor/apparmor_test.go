package apparmor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// list is a list of the kernel, with profiles of others.
const list = `virt-aa-helper (enforce)
basalt-vgpu (enforce)
libvirt-5f8e//qemu_bridge_helper (enforce)
basalt-worker (complain)
my-basalt-image (enforce)
basalt-image//child (enforce)
`

// kernel has this process read a list of loaded profiles.
func kernel(t *testing.T, list string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profiles")
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded = file
	t.Cleanup(func() { loaded = Loaded })
}

func TestModes(t *testing.T) {
	modes := Modes(list)
	for p, want := range map[Profile]string{VGPU: Enforced, Worker: "complain", Image: ""} {
		if modes[p] != want {
			t.Errorf("mode of %s = %q, want %q", p, modes[p], want)
		}
	}
}

func TestCommand(t *testing.T) {
	plain := []string{"/usr/bin/basalt-vgpu", "--vgpu", "v1"}
	loaded = filepath.Join(t.TempDir(), "missing")
	if got := VGPU.Command(plain...); !slices.Equal(got, plain) {
		t.Errorf("command without AppArmor = %q, want %q", got, plain)
	}
	kernel(t, list)
	if got := Image.Command(plain...); !slices.Equal(got, plain) {
		t.Errorf("command without the profile = %q, want %q", got, plain)
	}
	want := append([]string{"setpriv", "--apparmor-profile=basalt-vgpu"}, plain...)
	if got := VGPU.Command(plain...); !slices.Equal(got, want) {
		t.Errorf("command with the profile = %q, want %q", got, want)
	}
}
