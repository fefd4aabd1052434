package compile

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// vmad compiles vmad. Of its qualifiers, the type of the result has no effect: whether
// the result is signed follows from the types of A and B and from what is negated.
func (c *compiler) vmad(in *ptx.Inst) ([]ir.Op, error) {
	if err := operands(in, 4); err != nil {
		return nil, err
	}
	v := ops.Video{Op: "mad"}
	rest, err := videoTypes(in, &v)
	if err != nil {
		return nil, err
	}
	m := ops.Vmad{Signed: [2]bool{v.Signed[1], v.Signed[2]}}
	for _, q := range []struct {
		name string
		set  func()
	}{
		{"po", func() { m.PlusOne = true }}, {"sat", func() { m.Sat = true }},
		{"shr7", func() { m.Shift = 7 }}, {"shr15", func() { m.Shift = 15 }},
	} {
		if len(rest) > 0 && rest[0] == q.name {
			q.set()
			rest = rest[1:]
		}
	}
	if len(rest) > 0 {
		return nil, broken(in, qualifiers(rest), "the types of vmad must be followed by .po, .sat and .shr7 or .shr15 only")
	}
	for i := range m.Of {
		var ok bool
		if m.Of[i], ok = rangeOf(in.Args[i+1].Parts()); !ok {
			return nil, broken(in, selectedParts(in.Args), "vmad must select %s", partsRules[1])
		}
	}
	if in.Args[0].Parts()+in.Args[3].Parts() != "" {
		return nil, broken(in, selectedParts(in.Args), "the result and the last operand of vmad must be whole registers")
	}
	m.NegAB, m.NegC = in.Args[1].Negated != in.Args[2].Negated, in.Args[3].Negated
	if minus := negatedOperands(in); m.NegAB && m.NegC || m.PlusOne && len(minus) > 0 || in.Args[0].Negated {
		return nil, broken(in, fmt.Sprintf("a minus before operands %d", minus), "vmad must negate the product or the last operand, not both, and nothing with .po")
	}
	return c.apply(m.Operation(), in.Args, ptx.B32)
}

// negatedOperands returns the numbers of the operands with a minus, from 1 on.
func negatedOperands(in *ptx.Inst) (list []int) {
	for i := range in.Args {
		if in.Args[i].Negated {
			list = append(list, i+1)
		}
	}
	return list
}
