package deb_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNVIDIASource checks that the source of the modules is adapted to kernels whose
// pci_resize_resource has four parameters, and only to those.
func TestNVIDIASource(t *testing.T) {
	script, err := filepath.Abs("basalt/root/usr/lib/basalt/nvidia-source")
	if err != nil {
		t.Fatal(err)
	}
	const (
		three  = "int __must_check pci_resize_resource(struct pci_dev *dev, int i, int size);\n"
		four   = "int __must_check pci_resize_resource(struct pci_dev *dev, int i, int size,\n\t\t\t\t     int exclude_bars);\n"
		call   = "    r = pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size);\n"
		fourth = "    r = pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size, 0);\n"
	)
	for name, c := range map[string]struct{ header, declaration, source, want string }{
		"a kernel before the change": {"source", three, call, call},
		"a kernel of Debian":         {"source", four, call, fourth},
		"a kernel of somebody else":  {"build", four, call, fourth},
		"a source with the change":   {"source", four, fourth, fourth},
		"no headers":                 {"none", four, call, call},
	} {
		modules, source := t.TempDir(), t.TempDir()
		header, file := filepath.Join(modules, "6.12", c.header, "include/linux/pci.h"), filepath.Join(source, "nvidia/nv-pci.c")
		err := errors.Join(os.MkdirAll(filepath.Dir(header), 0o755), os.WriteFile(header, []byte("int x(int);\n"+c.declaration), 0o600),
			os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(c.source), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(script, "6.12")
		cmd.Dir, cmd.Env = source, append(os.Environ(), "BASALT_MODULES="+modules)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: error %v, output %q; want neither", name, err, out)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != c.want {
			t.Errorf("%s: source = %q, error %v; want %q", name, got, err, c.want)
		}
	}
}
