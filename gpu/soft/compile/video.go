package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// videoOps are the operations of video instructions on a whole register, on two
// halves and on four bytes; selectors of parts of a register are not known.
var videoOps = map[uint][]string{
	1: {"vadd", "vsub", "vabsdiff", "vmin", "vmax"},
	2: {"vadd2", "vsub2", "vabsdiff2", "vmin2", "vmax2", "vavrg2"},
	4: {"vadd4", "vsub4", "vabsdiff4", "vmin4", "vmax4", "vavrg4"},
}

// addVideo enters their decoders.
func addVideo() {
	for parts, names := range videoOps {
		for _, name := range names {
			v := ops.Video{Parts: parts, Op: strings.TrimRight(name[1:], "24")}
			decoders[name] = func(c *compiler, in *ptx.Inst) ([]ir.Op, error) { return c.video(in, v) }
		}
	}
}

func (c *compiler) video(in *ptx.Inst, v ops.Video) ([]ir.Op, error) {
	if len(in.Mods) < 3 {
		return nil, in.Errorf("unsupported instruction")
	}
	for i, m := range in.Mods[:3] {
		if v.Signed[i] = m == "s32"; !v.Signed[i] && m != "u32" {
			return nil, in.Errorf("unsupported instruction")
		}
	}
	rest := in.Mods[3:]
	if len(rest) > 0 && rest[0] == "sat" {
		v.Sat, rest = true, rest[1:]
	}
	if len(rest) == 1 && slices.Contains([]string{"add", "min", "max"}, rest[0]) {
		v.Then, rest = rest[0], nil
	}
	// The text says what an addition of an unclamped result is, and not what its
	// minimum is; several parts are added up only unclamped.
	if len(rest) > 0 || v.Parts == 1 && !v.Sat && (v.Then == "min" || v.Then == "max") || v.Parts > 1 && (v.Then != "" && v.Then != "add" || v.Then == "add" && v.Sat) {
		return nil, in.Errorf("unsupported instruction")
	}
	v.Sources = 3
	if v.Parts == 1 && v.Then == "" {
		v.Sources = 2
	}
	return c.apply(v.Operation(), in.Args, ptx.B32)
}
