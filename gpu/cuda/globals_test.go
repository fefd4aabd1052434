package cuda

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin/fatbintest"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// What nvcc makes is a fatbin: its variables are found in PTX and in machine
// code, once each, and broken images have none.
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
		if got := globalNames(c.image); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A module of machine code alone has its variables, too.
func TestGlobalsOfMachineCode(t *testing.T) {
	c := open(t, newDouble(t), &gate{})
	for name, image := range map[string][]byte{"cubin": fatbintest.Cubin(), "fatbin": fatbintest.Wrap(2, fatbintest.Cubin())} {
		m, _, info, err := c.ModuleLoad(image, worker.ModuleOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]abi.GlobalInfo{{Name: "v", Address: 0x78000, Size: 24}}, info.Globals); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := c.ModuleUnload(m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
