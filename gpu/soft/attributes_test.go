package soft_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// load returns a module's only kernel with its attributes.
func load(t *testing.T, src string) (worker.Context, worker.Function, [abi.FunctionAttributes]int32) {
	t.Helper()
	d, err := device.New(device.Options{VRAM: 64 << 20, SMs: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	_, funcs, info, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{})
	if err != nil {
		t.Fatalf("load module: %v\n%s", err, info.ErrorLog)
	}
	return c, funcs[0], info.Functions[0].Attributes
}

// TestAttributesAgree checks the consistency of attributes, as programs divide the
// device's limits by those of a kernel: the largest block of a kernel must be within
// every limit, and a multiprocessor must have room for the reported occupancy.
func TestAttributesAgree(t *testing.T) {
	card, err := device.New(device.Options{SMs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := card.Close(); err != nil {
			t.Error(err)
		}
	}()
	limits := card.Info().Attributes
	for name, head := range map[string]string{
		"nothing":      " { ret; }",
		"few":          " { .reg .b32 %r<10>; ret; }",
		"many":         " { .reg .b64 %rd<200>; ret; }",
		"many, small":  " .maxntid 256, 1, 1 { .reg .b64 %rd<200>; ret; }",
		"many, odd":    " .maxntid 250, 3, 1 { .reg .b64 %rd<200>; ret; }",
		"much memory":  " { .reg .b64 %rd<60000>; .local .b8 l[500000]; st.local.u8 [l], 1; ret; }",
		"much, shared": " { .reg .b32 %r<100>; .shared .b8 s[40000]; st.shared.u8 [s], 1; ret; }",
	} {
		t.Run(name, func(t *testing.T) {
			c, f, a := load(t, ptxHead+".entry k()"+head)
			threads, registers := a[0], a[4]
			if registers < 1 || registers > 255 || threads < 1 || threads > limits[1] || registers*threads > limits[12] {
				t.Errorf("kernel has %d registers in each of %d threads, want 1 to 255 and at most %d in a block", registers, threads, limits[12])
			}
			for _, block := range []int32{1, 31, 33, 128, 257, threads} {
				if block > threads {
					continue
				}
				n, err := c.OccupancyMaxActiveBlocksPerMultiprocessor(f, block, 0)
				if blocks := n; err != nil || blocks < 1 || blocks > limits[106] || blocks*block > limits[39] || blocks*block*registers > limits[82] {
					t.Errorf("occupancy = %d blocks of %d threads with %d registers, error %v; want at least 1 block within the limits of a multiprocessor", blocks, block, registers, err)
				}
			}
			r := &rig{TB: t, c: c, funcs: map[string]worker.Function{"k": f}}
			r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{uint32(threads), 1, 1}, 0)
			r.expect(r.buffer(make([]byte, 4)), 1, func(int) uint32 { return 0 })
		})
	}
}

// TestPTXVersion checks that PTX_VERSION is the architecture of .target, and
// BINARY_VERSION that of the device.
func TestPTXVersion(t *testing.T) {
	for target, want := range map[string]int32{"sm_35": 35, "sm_70": 70, "sm_90a": 90, "sm_100f": 100, "debug, sm_52": 52, "sm_61, texmode_independent": 61} {
		_, _, a := load(t, ".version 8.4\n.target "+target+"\n.address_size 64\n.entry k() { ret; }")
		if a[5] != want || a[6] != 90 {
			t.Errorf(".target %s: PTX version %d, binary version %d, want %d and 90", target, a[5], a[6], want)
		}
	}
}

// TestCapability checks that a device reports the capability that it was created with.
func TestCapability(t *testing.T) {
	d, err := device.New(device.Options{VRAM: 64 << 20, Capability: 103})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if a := d.Info().Attributes; a[75] != 10 || a[76] != 3 {
		t.Errorf("capability %d.%d, want 10.3", a[75], a[76])
	}
}

// TestModuleWithTooMuchIsRefused checks that a refused module has an error that names
// the reason, and no kernels.
func TestModuleWithTooMuchIsRefused(t *testing.T) {
	d, err := device.New(device.Options{VRAM: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]string{
		ptxHead + ".entry a() { ret; }\n.entry k()\n{ .reg .f64 %fd<1000000>; ret; }": "line 6",
		".version 8.4\n.address_size 64\n.entry k() { ret; }":                         ".target",
		".version 8.4\n.target sm_x\n.entry k() { ret; }":                             "sm_x",
	} {
		m, funcs, info, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{})
		if err == nil || m != nil || len(funcs) != 0 || len(info.Functions) != 0 || !strings.Contains(info.ErrorLog, want) {
			t.Errorf("load returned module %v, %d kernels, error %v, log %q; want an error whose log names %s", m, len(funcs), err, info.ErrorLog, want)
		}
	}
}
