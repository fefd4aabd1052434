package plan

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// makes says why the node cannot make the instance's machine, or nothing. A node that
// does not say what it can make is asked nothing: it finds out when it starts it.
func makes(in api.Instance, n api.Node) string {
	types, t := n.Status.Machines.Types, in.Status.Machine.Type
	if t != "" && len(types) > 0 && !slices.Contains(types, t) {
		return "its QEMU has no machine type " + t
	}
	return ""
}
