package compile

import (
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// special returns the register that holds a special register.
func (c *compiler) special(name string, cl ir.Class) (ir.Ref, error) {
	switch {
	case name == "WARP_SZ":
		return c.constant(cl, ir.WarpSize), nil
	case name == "%aggr_smem_size": // nothing is reserved
		name = "%total_smem_size"
	case zeroSpecial(name):
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

// zeroSpecial reports whether a special register is always zero here: those for which
// the driver has no value, counters of performance, and the shared memory that a system
// reserves.
func zeroSpecial(name string) bool {
	switch name {
	case "%gridid", "%current_graph_exec", "%pm0_64", "%pm1_64", "%pm2_64", "%pm3_64", "%pm4_64", "%pm5_64", "%pm6_64", "%pm7_64":
		return true
	}
	if n, ok := strings.CutPrefix(name, "%envreg"); ok && !ir.IsSpecial(name) {
		i, err := strconv.Atoi(n)
		return err == nil && i >= 0 && i < 32
	}
	if n, ok := strings.CutPrefix(name, "%pm"); ok {
		return len(n) == 1 && n[0] >= '0' && n[0] <= '7'
	}
	return strings.HasPrefix(name, "%reserved_smem_offset_")
}
