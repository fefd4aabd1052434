package trial

import (
	"net"
	"path/filepath"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// classNet is the kernel's directory of network interfaces.
const classNet = "/sys/class/net"

// Device returns the kernel's interface of a link. It is not ok if this machine has
// none.
func Device(n *hostnet.Network, l *hostnet.Link) (net.Interface, bool) {
	mac := ""
	for i := range n.Cards {
		if &n.Cards[i].Link == l {
			mac = n.Cards[i].MAC
		}
	}
	if mac == "" {
		i, err := net.InterfaceByName(l.Name)
		if err != nil {
			return net.Interface{}, false
		}
		return *i, true
	}
	all, err := net.Interfaces()
	if err != nil {
		return net.Interface{}, false
	}
	for _, i := range all {
		if permanent(i) == mac && !stacked(i.Name) {
			return i, true
		}
	}
	return net.Interface{}, false
}

// stacked reports whether an interface is on top of others, whose address it may
// have.
func stacked(name string) bool {
	lower, _ := filepath.Glob(filepath.Join(classNet, name, "lower_*")) // the pattern is a constant
	if len(lower) > 0 {
		return true
	}
	for _, kind := range []string{"bridge", "bonding", "tun_flags"} {
		if found, _ := filepath.Glob(filepath.Join(classNet, name, kind)); len(found) > 0 {
			return true
		}
	}
	return false
}

// Absent returns the names of declared cards that this machine does not have.
func Absent(n *hostnet.Network) []string {
	var names []string
	for i := range n.Cards {
		if _, ok := Device(n, &n.Cards[i].Link); !ok {
			names = append(names, n.Cards[i].Name)
		}
	}
	return names
}
