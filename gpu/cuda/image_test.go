package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin/fatbintest"
)

// The kernels of an image are found in PTX, in machine code, and in every image
// of a fatbin, each once.
func TestImageInfo(t *testing.T) {
	source := ".version 9.9\n.target sm_120a\n.entry k(.param .u64 a, .param .u32 b) { from.the.future; }\n.visible .entry second() { ret; }\n"
	link := abi.LinkImage{Objects: []abi.LinkObject{{Name: "a", Image: []byte(".version 6.0\n.target sm_50\n.entry first() { ret; }")}, {Name: "b", Image: fatbintest.Cubin()}}}
	for _, c := range []struct {
		name  string
		image []byte
		want  string // "": abi.ErrInvalidImage
	}{
		{"PTX", []byte(source + "\x00"), "k(0+8,8+4) second()"},
		{"machine code", fatbintest.Cubin(), "k(0+8,8+4)"},
		{"fatbin of both", join(fatbintest.Wrap(2, fatbintest.Cubin()), fatbintest.Wrap(1, []byte(source))), "k(0+8,8+4) second()"},
		{"fatbin with an image that cannot be read", join(fatbintest.Wrap(2, []byte("\x7fELF")), fatbintest.Wrap(1, []byte(source))), "k(0+8,8+4) second()"},
		{"linked", link.Append(nil), "first() k(0+8,8+4)"},
		{"fatbin of nothing that can be read", fatbintest.Wrap(2, []byte("\x7fELF")), ""},
		{"half a fatbin", fatbintest.Wrap(1, []byte(source))[:70], ""},
	} {
		info, err := (&driver{}).ImageInfo(c.image)
		if got := kernelsText(info); got != c.want || errors.Is(err, abi.ErrInvalidImage) != (c.want == "") {
			t.Errorf("%s: kernels = %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// join combines several fatbins into one.
func join(fatbins ...[]byte) []byte {
	all := slices.Clone(fatbins[0])
	for _, f := range fatbins[1:] {
		all = append(all, f[16:]...)
	}
	binary.LittleEndian.PutUint64(all[8:], uint64(len(all)-16))
	return all
}

func kernelsText(info abi.ModuleInfo) string {
	var all []string
	for _, f := range info.Functions {
		var params []string
		for _, p := range f.Params {
			params = append(params, fmt.Sprintf("%d+%d", p.Offset, p.Size))
		}
		all = append(all, f.Name+"("+strings.Join(params, ",")+")")
	}
	return strings.Join(all, " ")
}
