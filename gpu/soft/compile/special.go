package compile

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// special is the register that holds a special register.
func (c *compiler) special(name string, cl exec.Class) (exec.Ref, error) {
	switch name {
	case "WARP_SZ":
		return c.constant(cl, exec.WarpSize), nil
	case "%gridid", "%envreg0":
		return c.constant(cl, 0), nil
	}
	switch {
	case exec.HasSpecial(name) && cl == exec.Class32:
		slot, ok := c.p.Specials[name]
		if !ok {
			slot = c.fresh(exec.Class32).Slot
			c.p.Specials[name] = slot
		}
		return exec.Ref{Class: exec.Class32, Slot: slot}, nil
	case strings.HasPrefix(name, "%"):
		return exec.Ref{}, c.in.Errorf("special register " + name + " is not supported here")
	}
	return exec.Ref{}, c.in.Errorf("unknown name " + name)
}
