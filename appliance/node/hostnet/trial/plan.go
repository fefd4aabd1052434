package trial

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// change describes how to get from the confirmed files to those on trial, and back.
type change struct {
	write []hostnet.Rendered // files on trial
	hide  []string           // names of confirmed files that the trial does not have
	// gone are the existing bonds and VLANs that must be deleted, or created again
	// because networkd does not change an existing device.
	gone []string
	back []string // the same for the rollback
}

// plan plans the change. It is pure.
func plan(old, next []hostnet.Rendered) change {
	c := change{write: next}
	for _, f := range old {
		if !slices.ContainsFunc(next, func(n hostnet.Rendered) bool { return n.Name == f.Name }) {
			c.hide = append(c.hide, f.Name)
		}
	}
	c.gone, c.back = stale(old, next), stale(next, old)
	return c
}

// stale returns the devices of the files that are not in others in the same form. A
// VLAN is deleted with its parent, so that it is created again on the new one.
func stale(files, others []hostnet.Rendered) []string {
	var devices []string
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".netdev") && !slices.Contains(others, f) {
			devices = append(devices, device(f.Name))
		}
	}
	for _, f := range files {
		on, ok := strings.CutSuffix(f.Name, ".network")
		if !ok || !slices.Contains(devices, strings.TrimPrefix(on, hostnet.Prefix)) {
			continue
		}
		for _, line := range strings.Split(f.Content, "\n") {
			if vlan, ok := strings.CutPrefix(line, "VLAN="); ok && !slices.Contains(devices, vlan) {
				devices = append(devices, vlan)
			}
		}
	}
	return devices
}

// device returns the device of a .netdev file, which is named after it.
func device(file string) string {
	return strings.TrimSuffix(strings.TrimPrefix(file, hostnet.Prefix), ".netdev")
}
