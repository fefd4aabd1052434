package main

import (
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/node/budget"
)

// osdMemory returns the memory target in bytes of an OSD on this machine, or 0 if the machine's
// memory is unknown.
func osdMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return budget.OSDMemory(int64(info.Totalram) * int64(info.Unit))
}

// runs returns what this node runs besides its instances.
func (n *node) runs() budget.Runs {
	d := n.storage.node.Daemons()
	return budget.Runs{OSDs: d.OSDs, Monitor: d.Monitor, Manager: d.Manager, OSDMemory: n.storage.node.OSDMemory, Networks: n.network != nil}
}
