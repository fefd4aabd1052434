package hardware

import (
	"fmt"
	"path"

	"github.com/basalt-gpu/basalt/api"
)

// slow is the lowest speed of a link that is not reported, in Mbit/s.
const slow = 1000

// nics checks wired network interfaces: Ethernet, with a hardware device, not
// wireless.
func nics(f Facts) api.HardwareCheck {
	const id, dir = api.HardwareNICs, "sys/class/net"
	var words, bad []string
	up := 0
	for _, name := range names(f.FS, dir, "") {
		at := path.Join(dir, name)
		if line(f.FS, at, "type") != "1" || !exists(f.FS, at, "device") || exists(f.FS, at, "phy80211") {
			continue
		}
		if line(f.FS, at, "carrier") != "1" {
			words = append(words, name+" without a link")
			continue
		}
		up++
		speed, _ := number(f.FS, at, "speed")
		duplex := line(f.FS, at, "duplex")
		switch {
		case duplex == "half":
			bad = append(bad, name+" half duplex")
		case speed > 0 && speed < slow:
			bad = append(bad, fmt.Sprintf("%s %d Mbit/s", name, speed))
		case speed <= 0:
			words = append(words, name+" of unknown speed")
			continue
		}
		words = append(words, fmt.Sprintf("%s %d Mbit/s", name, speed))
	}
	switch {
	case len(words) == 0:
		return unknown(id, "no wired network interface", "See dmesg for the interface's driver and firmware.")
	case up == 0:
		return warning(id, few(words), "No network interface has a link: the node cannot reach any other machine.", "Check the cables and the switch's ports.")
	case len(bad) > 0:
		return warning(id, few(bad), "The link is slower than a cluster needs: migrations, copies of disks and guests' traffic are slow.", "See to the cable (all eight wires) and the switch's port; let both ends negotiate.")
	}
	return ok(id, few(words))
}

func pathMTU(f Facts) api.HardwareCheck {
	const id = api.HardwarePathMTU
	var narrow, silent, good []string
	for _, p := range f.Paths {
		to := p.Node + " (" + p.Address + ")"
		switch {
		case p.Err != nil || p.MTU == 0:
			silent = append(silent, to)
		case p.MTU < p.LocalMTU:
			narrow = append(narrow, fmt.Sprintf("%s: %d of %d bytes of %s arrive", to, p.MTU, p.LocalMTU, p.Interface))
		default:
			good = append(good, fmt.Sprintf("%s %d bytes", to, p.MTU))
		}
	}
	switch {
	case len(f.Paths) == 0:
		return ok(id, "no other nodes to reach")
	case len(narrow) > 0:
		return warning(id, few(narrow), "Large packets between the nodes are lost: connections hang after they have begun, and guests' networks fail.",
			"Set the same MTU on all nodes' interfaces and the switch's ports between them.")
	case len(good) == 0:
		return unknown(id, "no answer from "+few(silent), "Packets of ping (ICMP) may be filtered, or ping is not installed.")
	}
	return ok(id, few(good))
}
