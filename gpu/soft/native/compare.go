package native

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// comparisons returns the operations of setp. Their results are masks.
func comparisons() map[string]lowering {
	m := map[string]lowering{}
	signed := map[string]func(b *builder, x, y value) id{
		"eq": func(b *builder, x, y value) id { return b.equal(x, y) },
		"ne": func(b *builder, x, y value) id { return b.not(b.equal(x, y)) },
		"gt": func(b *builder, x, y value) id { return b.above(x, y, false) },
		"lt": func(b *builder, x, y value) id { return b.above(y, x, false) },
		"le": func(b *builder, x, y value) id { return b.not(b.above(x, y, false)) },
		"ge": func(b *builder, x, y value) id { return b.not(b.above(y, x, false)) },
	}
	unsigned := map[string]func(b *builder, x, y value) id{
		"eq": signed["eq"], "ne": signed["ne"],
		"gt hi": func(b *builder, x, y value) id { return b.above(x, y, true) },
		"lt lo": func(b *builder, x, y value) id { return b.above(y, x, true) },
		"le ls": func(b *builder, x, y value) id { return b.not(b.above(x, y, true)) },
		"ge hs": func(b *builder, x, y value) id { return b.not(b.above(y, x, true)) },
	}
	add := func(names, types string, f func(b *builder, x, y value) id, loose bool) {
		for _, n := range strings.Fields(names) {
			for _, t := range strings.Fields(types) {
				m["setp."+n+"."+t] = lowering{loose: loose, f: func(b *builder, s []value) value {
					return value{class: ir.ClassPred, lo: f(b, b.comparable(s[0], t), b.comparable(s[1], t))}
				}}
			}
		}
	}
	for n, f := range signed {
		add(n, "s16 s32 s64", f, false)
	}
	for n, f := range unsigned {
		add(n, "u16 u32 u64", f, false)
	}
	add("eq", "b16 b32 b64", signed["eq"], false)
	add("ne", "b16 b32 b64", signed["ne"], false)
	for n, p := range floatPredicates {
		add(n, "f32 f64", func(b *builder, x, y value) id { return b.compareFloat(x, y, p) }, true)
	}
	return m
}

// comparable extends numbers of 16 bits to 32.
func (b *builder) comparable(v value, t string) value {
	switch t {
	case "s16":
		v.lo = b.short(v.lo)
	case "u16", "b16":
		v.lo = b.and(v.lo, 0xffff)
	}
	return v
}

// floatPredicates are the immediates of VCMPPS that raise no exception for quiet NaNs.
var floatPredicates = map[string]int64{
	"eq": 0x00, "ne": 0x0c, "lt": 0x11, "le": 0x12, "gt": 0x1e, "ge": 0x1d,
	"equ": 0x08, "neu": 0x04, "ltu": 0x19, "leu": 0x1a, "gtu": 0x16, "geu": 0x15,
	"num": 0x07, "nan": 0x03,
}

// packed combines two masks of four lanes to one of eight.
func (b *builder) packed(lo, hi id) id { return b.low(value{ir.Class64, lo, hi}) }

func (b *builder) equal(x, y value) id {
	if x.class == ir.Class64 {
		return b.packed(b.op(amd64.VPCMPEQQ, x.lo, y.lo), b.op(amd64.VPCMPEQQ, x.hi, y.hi))
	}
	return b.op(amd64.VPCMPEQD, x.lo, y.lo)
}

func (b *builder) above(x, y value, unsigned bool) id {
	if x.class == ir.Class64 {
		return b.packed(b.greater(x.lo, y.lo, unsigned), b.greater(x.hi, y.hi, unsigned))
	}
	if unsigned {
		return b.not(b.op(amd64.VPCMPEQD, b.op(amd64.VPMINUD, x.lo, y.lo), x.lo))
	}
	return b.op(amd64.VPCMPGTD, x.lo, y.lo)
}

func (b *builder) compareFloat(x, y value, p int64) id {
	if x.class == ir.Class64 {
		return b.packed(b.opImm(amd64.VCMPPD, x.lo, y.lo, p), b.opImm(amd64.VCMPPD, x.hi, y.hi, p))
	}
	return b.opImm(amd64.VCMPPS, x.lo, y.lo, p)
}
