package main

import (
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/node/budget"
)

// osdMemory is what an OSD of this machine aims at, in bytes; 0 where its memory is not
// known.
func osdMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return budget.OSDMemory(int64(info.Totalram) * int64(info.Unit))
}

// runs is what this node runs beside its instances.
func (n *node) runs() budget.Runs {
	d := n.storage.node.Daemons()
	return budget.Runs{OSDs: d.OSDs, Monitor: d.Monitor, Manager: d.Manager, OSDMemory: n.storage.node.OSDMemory, Networks: n.network != nil}
}
