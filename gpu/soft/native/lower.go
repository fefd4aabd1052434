package native

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// lowering converts an operation on sources to vector instructions.
type lowering struct {
	f func(b *builder, s []value) value
	// loose: NaNs among the sources may be others than that of PTX.
	loose bool
}

// find returns the lowering of an operation of the table. Variants of floating-point
// operations are derived from the plain form.
func find(o ops.Operation) (lowering, bool) {
	if l, ok := withConstants(o); ok {
		return l, true
	}
	name, sat := strings.CutSuffix(o.Name, "/sat")
	name, ftz := strings.CutSuffix(name, "/ftz")
	l, ok := lowerings[name]
	if !ok || !sat && !ftz {
		return l, ok
	}
	if strings.HasSuffix(name, ".f16") || strings.HasSuffix(name, ".f16x2") {
		return ofHalves(l, ftz, sat), true
	}
	if sat && !strings.HasSuffix(name, ".f32") {
		return l, false
	}
	plain := l.f
	l.f = func(b *builder, s []value) value {
		if ftz {
			s = b.flush(s)
		}
		v := plain(b, s)
		if sat {
			v = b.saturate(v)
		}
		if ftz {
			v = b.flush([]value{v})[0]
		}
		return v
	}
	return l, ok
}

// Makes reports whether an operation of the table can be compiled to machine code.
func Makes(o ops.Operation) bool {
	_, ok := find(o)
	return ok
}

// lowerings has the operations of ops.txt that can be compiled to machine code.
var lowerings = func() map[string]lowering {
	m := map[string]lowering{}
	for _, table := range []map[string]lowering{integers(), wides(), bitwise(), divisions(), floats(), doubles(), halves(), exponentials(), waves(), conversions(), comparisons()} {
		for k, l := range table {
			m[k] = l
		}
	}
	return m
}()

// set assigns one lowering to several operations.
func set(m map[string]lowering, l lowering, names ...string) {
	for _, n := range names {
		m[n] = l
	}
}

// one returns the lowering of an operation on one vector of 32-bit lanes.
func one(f func(b *builder, x id) id) lowering {
	return lowering{f: func(b *builder, s []value) value { return value{class: ir.Class32, lo: f(b, s[0].lo)} }}
}

func two(f func(b *builder, x, y id) id) lowering {
	return lowering{f: func(b *builder, s []value) value {
		return value{class: ir.Class32, lo: f(b, s[0].lo, s[1].lo)}
	}}
}

func three(f func(b *builder, x, y, z id) id) lowering {
	return lowering{f: func(b *builder, s []value) value {
		return value{class: ir.Class32, lo: f(b, s[0].lo, s[1].lo, s[2].lo)}
	}}
}

// plain returns the lowering to one instruction.
func plain(in *amd64.Inst) lowering {
	return two(func(b *builder, x, y id) id { return b.op(in, x, y) })
}

// both applies the same function to the two vectors of 64-bit lanes.
func both(f func(b *builder, x, y id) id) lowering {
	return lowering{f: func(b *builder, s []value) value {
		return value{ir.Class64, f(b, s[0].lo, s[1].lo), f(b, s[0].hi, s[1].hi)}
	}}
}

func both1(f func(b *builder, x id) id) lowering {
	return lowering{f: func(b *builder, s []value) value {
		return value{ir.Class64, f(b, s[0].lo), f(b, s[0].hi)}
	}}
}

func plainBoth(in *amd64.Inst) lowering {
	return both(func(b *builder, x, y id) id { return b.op(in, x, y) })
}
