package compile

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// special returns the register that holds a special register.
func (c *compiler) special(name string, cl ir.Class) (ir.Ref, error) {
	switch name {
	case "WARP_SZ":
		return c.constant(cl, ir.WarpSize), nil
	case "%gridid", "%envreg0":
		return c.constant(cl, 0), nil
	}
	switch {
	case ir.IsSpecial(name) && cl == ir.Class32:
		slot, ok := c.p.Specials[name]
		if !ok {
			slot = c.fresh(ir.Class32).Slot
			c.p.Specials[name] = slot
		}
		return ir.Ref{Class: ir.Class32, Slot: slot}, nil
	case ir.IsSpecial(name):
		return ir.Ref{}, broken(c.in, name+", which has 32 bits", "the operand must be %s", className(cl))
	case strings.HasPrefix(name, "%"):
		return ir.Ref{}, missing(c.in, "special register %s", name)
	}
	return ir.Ref{}, broken(c.in, "unknown name "+name, "the operand must be a register, a variable, a constant or a label of the function")
}
