package null

import (
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

func TestReadLinked(t *testing.T) {
	const head = ".version 6.0\n.target sm_60\n.address_size 64\n"
	image := func(sources ...string) []byte {
		l := &abi.LinkImage{}
		for i, src := range sources {
			l.Objects = append(l.Objects, abi.LinkObject{Type: 1, Name: string(rune('a' + i)), Image: []byte(head + src + "\x00")})
		}
		return l.Append(nil)
	}
	o, err := read(image(".extern .global .u32 v; .visible .entry k(.param .u64 p) { whatever; }", ".visible .global .u32 v; .visible .entry l() { }"))
	if err != nil || len(o.kernels) != 2 || len(o.vars) != 1 || o.arch != 60 {
		t.Errorf("outline = %+v, %v; want two kernels, a variable and architecture 60", o, err)
	}
	for want, bad := range map[string][]byte{
		"b: line 4: function k is already defined in a, line 4": image(".entry k() { }", ".entry k() { }"),
		"b: line 4: ": image("", ".global"),
	} {
		if _, err := read(bad); !errors.Is(err, abi.ErrInvalidPTX) || !strings.Contains(err.Error(), want) {
			t.Errorf("read error = %v, want %q", err, want)
		}
	}
	if _, err := read(image("")[:20]); !errors.Is(err, abi.ErrInvalidImage) {
		t.Errorf("read of a truncated image = %v, want %v", err, abi.ErrInvalidImage)
	}
}
