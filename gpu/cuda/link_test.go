package cuda

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

const globalPTX = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .b8 counter[12]; // double:\n"

func linkImage(objects ...abi.LinkObject) []byte {
	return (&abi.LinkImage{OptLevel: 4, MaxRegisters: 40, Objects: objects}).Append(nil)
}

// All objects are passed to libcuda's linker, with the program's options and
// names, and the result is loaded as the module.
func TestLink(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	d.take(t)
	m, functions, info, err := c.ModuleLoad(linkImage(
		abi.LinkObject{Type: 1, Name: "main.ptx", Image: []byte(emptyPTX + "\x00")},
		abi.LinkObject{Type: 2, Name: "lib", Image: []byte("\x50\xed\x55\xba double:")},
		abi.LinkObject{Type: 1, Name: "globals", Image: []byte(globalPTX)},
		abi.LinkObject{Type: 4, Name: "lib.a", Image: []byte("!<arch>\n double:")},
	), worker.ModuleOptions{OptLevel: 4})
	if err != nil {
		t.Fatal(err, info.ErrorLog)
	}
	want := []string{
		"link max registers 40",
		"cuLinkAddData main.ptx type 1, 96 bytes, 0 options",
		"cuLinkAddData lib type 2, 12 bytes, 0 options",
		"cuLinkAddData globals type 1, 90 bytes, 0 options",
		"cuLinkAddData lib.a type 4, 16 bytes, 0 options",
		"cuLinkDestroy", "cuModuleLoadDataEx",
	}
	if diff := cmp.Diff(want, d.take(t)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if len(functions) != 2 || info.InfoLog != "double: linked" || len(info.Globals) != 1 || info.Globals[0].Name != "counter" {
		t.Errorf("%d functions, info = %+v; want 2 functions, the linker's log and the global counter", len(functions), info)
	}
	if err := c.ModuleUnload(m); err != nil {
		t.Error(err)
	}
}

// An image that was linked when the program was built is loaded if it has code for
// the card; otherwise its parts are linked.
func TestLinkedIsLoadedFirst(t *testing.T) {
	image := linkImage(
		abi.LinkObject{Type: abi.LinkLinked, Name: "linked", Image: []byte(globalPTX)},
		abi.LinkObject{Type: 1, Name: "part", Image: []byte(emptyPTX)},
	)
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"code for the card": {"", []string{"jit max registers 40", "cuModuleLoadDataEx"}},
		"none": {"cuModuleLoadDataEx 209\n", []string{"cuModuleLoadDataEx = 209", "link max registers 40",
			"cuLinkAddData part type 1, 96 bytes, 0 options", "cuLinkDestroy", "cuModuleLoadDataEx"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t)
			c := open(t, d, &gate{})
			d.play(t, test.script)
			d.take(t)
			m, _, _, err := c.ModuleLoad(image, worker.ModuleOptions{OptLevel: 4})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.take(t)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if err := c.ModuleUnload(m); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLinkFails(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	good := abi.LinkObject{Type: 1, Name: "good", Image: []byte(emptyPTX)}
	for _, test := range []struct {
		script string
		image  []byte
		want   error
		log    string
	}{
		{"", linkImage(good, abi.LinkObject{Type: 1, Name: "bad", Image: []byte("nothing")}), abi.ErrInvalidPTX, "double: bad: broken"},
		{"", linkImage(good, abi.LinkObject{Type: 5, Name: "odd", Image: []byte("double:")}), abi.ErrInvalidImage, ""},
		{"", linkImage(good)[:40], abi.ErrInvalidImage, ""},
		{"cuLinkCreate 2\n", linkImage(good, good), abi.ErrOutOfMemory, ""},
		{"cuLinkComplete 218\n", linkImage(good, good), abi.ErrInvalidPTX, ""},
	} {
		d.play(t, test.script)
		_, _, info, err := c.ModuleLoad(test.image, worker.ModuleOptions{OptLevel: 4})
		if !errors.Is(err, test.want) || info.ErrorLog != test.log {
			t.Errorf("script %q: error %v and log %q, want %v and %q", test.script, err, info.ErrorLog, test.want, test.log)
		}
	}
}
