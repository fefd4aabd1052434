package soft

import "strings"

// special is the register that holds a special register.
func (c *compiler) special(name string, cl Class) (Ref, error) {
	switch name {
	case "WARP_SZ":
		return c.constant(cl, WarpSize), nil
	case "%gridid", "%envreg0":
		return c.constant(cl, 0), nil
	}
	switch {
	case HasSpecial(name) && cl == Class32:
		slot, ok := c.p.Specials[name]
		if !ok {
			slot = c.fresh(Class32).Slot
			c.p.Specials[name] = slot
		}
		return Ref{Class32, slot}, nil
	case strings.HasPrefix(name, "%"):
		return Ref{}, c.in.Errorf("special register " + name + " is not supported here")
	}
	return Ref{}, c.in.Errorf("unknown name " + name)
}
