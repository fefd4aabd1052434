package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin/fatbintest"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// The variables of a fatbin, as nvcc creates it, are found in PTX and in machine
// code, once each; broken images have none.
func TestGlobalNames(t *testing.T) {
	for name, c := range map[string]struct {
		image []byte
		want  []string
	}{
		"PTX":                    {[]byte(source), []string{"counter"}},
		"machine code":           {fatbintest.Cubin(), []string{"v"}},
		"PTX in a fatbin":        {fatbintest.Wrap(1, []byte(source)), []string{"counter"}},
		"machine code in one":    {fatbintest.Wrap(2, fatbintest.Cubin()), []string{"v"}},
		"broken machine code":    {[]byte("\x7fELF and no more"), nil},
		"a fatbin that is short": {fatbintest.Wrap(2, fatbintest.Cubin())[:40], nil},
	} {
		if got := contentsOf(c.image).globals; !slices.Equal(got, c.want) {
			t.Errorf("%s: globals = %q, want %q", name, got, c.want)
		}
	}
}

// A module of machine code alone has its variables too.
func TestGlobalsOfMachineCode(t *testing.T) {
	c := open(t, newDouble(t), &gate{})
	for name, image := range map[string][]byte{"cubin": fatbintest.Cubin(), "fatbin": fatbintest.Wrap(2, fatbintest.Cubin())} {
		m, _, info, err := c.ModuleLoad(image, worker.ModuleOptions{})
		if err != nil {
			t.Fatalf("%s: ModuleLoad = %v, want no error", name, err)
		}
		if diff := cmp.Diff([]abi.GlobalInfo{{Name: "v", Address: 0x78000, Size: 24}}, info.Globals); diff != "" {
			t.Errorf("%s: globals mismatch (-want +got):\n%s", name, diff)
		}
		if err := c.ModuleUnload(m); err != nil {
			t.Errorf("%s: ModuleUnload = %v, want no error", name, err)
		}
	}
}

// A managed variable would be in the worker, where the guest's pointer to it is
// not valid: the module is refused with the variable's name, and is unloaded.
func TestManagedVariableIsRefused(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	d.take(t)
	image := globalPTX + ".visible .global .attribute(.managed) .b32 shared_with_host;\n"
	_, _, info, err := c.ModuleLoad([]byte(image), worker.ModuleOptions{})
	if !errors.Is(err, abi.ErrNotSupported) || !strings.Contains(info.ErrorLog, "managed variable shared_with_host") {
		t.Errorf("ModuleLoad = %v with log %q, want %v and the variable's name", err, info.ErrorLog, abi.ErrNotSupported)
	}
	if log := d.take(t); count(log, "cuModuleUnload") != 1 {
		t.Errorf("calls = %q, want one cuModuleUnload", log)
	}
	if _, _, _, err := c.ModuleLoad([]byte(globalPTX), worker.ModuleOptions{}); err != nil {
		t.Errorf("ModuleLoad of another module with the variable counter = %v, want no error", err)
	}
}
