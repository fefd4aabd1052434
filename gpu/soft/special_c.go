package soft

import "strings"

// special is the register that holds a special register.
func (c *compiler) special(name string, cl class) (ref, error) {
	switch name {
	case "WARP_SZ":
		return c.constant(cl, warpSize), nil
	case "%gridid", "%envreg0":
		return c.constant(cl, 0), nil
	}
	switch {
	case specialSupported(name) && cl == class32:
		slot, ok := c.p.specials[name]
		if !ok {
			slot = c.fresh(class32).slot
			c.p.specials[name] = slot
		}
		return ref{class32, slot}, nil
	case strings.HasPrefix(name, "%"):
		return ref{}, c.in.Errorf("special register " + name + " is not supported here")
	}
	return ref{}, c.in.Errorf("unknown name " + name)
}
