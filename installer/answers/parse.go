package answers

import (
	"net"
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse a file. The error is Mistakes, all of them, in the file's order.
func Parse(data []byte) (Answers, error) {
	a := Answers{Serial: "ttyS0", After: Reboot}
	root, mistakes := document(data)
	if mistakes != nil {
		return a, mistakes
	}
	r := &reader{}
	r.answers(root, &a)
	if len(r.mistakes) > 0 {
		return a, r.mistakes.sorted()
	}
	return a, nil
}

func (r *reader) answers(root *yaml.Node, a *Answers) {
	var erase *yaml.Node
	ok := r.mapping(root, "",
		field{"disk", "disk: only, or disk: {serial: …}", func(n *yaml.Node, at string) { r.disk(n, at, &a.Disk) }},
		field{"erase", "erase: with the disk's serial, or " + EraseAnything, func(n *yaml.Node, at string) {
			erase = n
			a.Erase, _ = r.text(n, at, "write the disk's serial, or "+EraseAnything)
		}},
		field{"reinstall", "", func(n *yaml.Node, at string) { a.Reinstall = r.flag(n, at) }},
		field{"hostname", "hostname: node1", func(n *yaml.Node, at string) { a.Hostname = r.checked(n, at, CheckHostname) }},
		field{"network", "network: {interface: eno1, address: dhcp}", func(n *yaml.Node, at string) { r.network(n, at, &a.Network) }},
		field{"ntp", "", func(n *yaml.Node, at string) {
			r.each(n, at, 8, func(n *yaml.Node, at string) { a.NTP = append(a.NTP, r.checked(n, at, CheckServer)) })
		}},
		field{"cluster", "cluster: {init: NAME} or {join: TOKEN}", func(n *yaml.Node, at string) { r.cluster(n, at, &a.Cluster) }},
		field{"root", "root: {password: …} or root: {sshKeys: […]}", func(n *yaml.Node, at string) { r.root(n, at, &a.Root) }},
		field{"storage", "", func(n *yaml.Node, at string) {
			r.mapping(n, at, field{"sharedDir", "", func(n *yaml.Node, at string) { a.SharedDir = r.checked(n, at, CheckSharedDir) }})
		}},
		field{"console", "", func(n *yaml.Node, at string) {
			r.mapping(n, at, field{"serial", "", func(n *yaml.Node, at string) {
				if a.Serial = r.checked(n, at, CheckSerial); a.Serial == "none" {
					a.Serial = ""
				}
			}})
		}},
		field{"allowEmulation", "", func(n *yaml.Node, at string) { a.AllowEmulation = r.flag(n, at) }},
		field{"after", "", func(n *yaml.Node, at string) { r.after(n, at, &a.After) }},
	)
	if ok && erase != nil && a.Disk.Serial != "" && a.Erase != a.Disk.Serial && a.Erase != EraseAnything {
		r.wrong(erase, "erase", "write "+clip(a.Disk.Serial)+", or "+EraseAnything, "%q is not the serial in disk.serial", clip(a.Erase))
	}
}

// checked text: check gives the reason against it and what to write instead.
func (r *reader) checked(n *yaml.Node, at string, check func(string) error) string {
	s, ok := r.text(n, at, "")
	if !ok {
		return ""
	}
	r.because(n, at, check(s))
	return s
}

func (r *reader) because(n *yaml.Node, at string, err error) {
	if err == nil {
		return
	}
	if b, ok := err.(*Bad); ok { //nolint:errorlint // the checks return it bare
		r.wrong(n, at, b.Instead, "%s", b.Reason)
		return
	}
	r.wrong(n, at, "", "%s", err)
}

func (r *reader) disk(n *yaml.Node, at string, d *Disk) {
	const instead = "write disk: only, or one of serial:, byId:, size: below it"
	if n.Kind == yaml.ScalarNode {
		if n.Value != "only" {
			r.wrong(n, at, instead, "%q names no disk", clip(n.Value))
		}
		d.Only = true
		return
	}
	ok := r.mapping(n, at,
		field{"only", "", func(n *yaml.Node, at string) {
			if d.Only = r.flag(n, at); !d.Only {
				r.wrong(n, at, instead, "false names no disk")
			}
		}},
		field{"byId", "", func(n *yaml.Node, at string) {
			d.ByID, _ = r.text(n, at, "write a name from /dev/disk/by-id")
			d.ByID = strings.TrimPrefix(d.ByID, "/dev/disk/by-id/")
			if strings.Contains(d.ByID, "/") {
				r.wrong(n, at, "write a name from /dev/disk/by-id; /dev/sdX may be another disk after each start", "%q is no name under /dev/disk/by-id", clip(d.ByID))
			}
		}},
		field{"serial", "", func(n *yaml.Node, at string) {
			d.Serial, _ = r.text(n, at, "write the serial that is printed on the disk")
		}},
		field{"size", "", func(n *yaml.Node, at string) {
			if s, ok := r.text(n, at, sizeForm); ok {
				size, err := ParseSize(s)
				d.Size = size
				r.because(n, at, err)
			}
		}},
	)
	if ok && len(n.Content) != 2 {
		r.wrong(n, at, instead, "needs exactly one rule and has %d", len(n.Content)/2)
	}
}

func (r *reader) path(at string, p *Path) []field {
	_ = at
	return []field{
		{"interface", "", func(n *yaml.Node, at string) { p.Interface = r.checked(n, at, checkInterface) }},
		{"mac", "", func(n *yaml.Node, at string) {
			s, _ := r.text(n, at, "write six bytes: 52:54:00:12:34:56")
			mac, err := net.ParseMAC(s)
			if s != "" && (err != nil || len(mac) != 6) {
				r.wrong(n, at, "write six bytes: 52:54:00:12:34:56", "%q is no MAC address", clip(s))
			}
			p.MAC = mac.String()
		}},
		{"address", "address: dhcp, or address: 192.0.2.11/24", func(n *yaml.Node, at string) {
			s, ok := r.text(n, at, "write dhcp, or an address such as 192.0.2.11/24")
			if !ok {
				return
			}
			if p.DHCP = s == "dhcp"; !p.DHCP {
				var err error
				p.Address, err = ParseAddress(s)
				r.because(n, at, err)
			}
		}},
	}
}

func (r *reader) card(n *yaml.Node, at string, p Path) {
	if (p.Interface == "") == (p.MAC == "") {
		r.wrong(n, at, "write interface: eno1, or mac: 52:54:00:12:34:56", "needs exactly one of interface and mac")
	}
}

func (r *reader) network(n *yaml.Node, at string, w *Network) {
	var gateway, second *yaml.Node
	ok := r.mapping(n, at, append(r.path(at, &w.Path),
		field{"gateway", "", func(n *yaml.Node, at string) { gateway, w.Gateway = n, r.address(n, at) }},
		field{"dns", "", func(n *yaml.Node, at string) {
			r.each(n, at, 3, func(n *yaml.Node, at string) { w.DNS = append(w.DNS, r.address(n, at)) })
		}},
		field{"second", "", func(n *yaml.Node, at string) {
			second, w.Second = n, &Path{}
			if r.mapping(n, at, r.path(at, w.Second)...) {
				r.card(n, at, *w.Second)
			}
		}},
	)...)
	if !ok {
		return
	}
	r.card(n, at, w.Path)
	if gateway != nil {
		r.because(gateway, join(at, "gateway"), CheckGateway(w.Path, w.Gateway))
	}
	if second != nil {
		r.because(second, join(at, "second"), CheckSecond(w.Path, *w.Second))
	}
}

func (r *reader) address(n *yaml.Node, at string) netip.Addr {
	const instead = "write an address such as 192.0.2.1"
	s, ok := r.text(n, at, instead)
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
		r.wrong(n, at, instead, "%q is no address of a machine", clip(s))
	}
	return a
}

func (r *reader) cluster(n *yaml.Node, at string, c *Cluster) {
	ok := r.mapping(n, at,
		field{"init", "", func(n *yaml.Node, at string) { c.Init = r.checked(n, at, CheckClusterName) }},
		field{"join", "", func(n *yaml.Node, at string) {
			if s, ok := r.text(n, at, tokenHint); ok {
				c.Token = strings.TrimSpace(s)
				_, err := ParseToken(c.Token)
				r.because(n, at, err)
			}
		}},
	)
	if ok && len(n.Content) != 2 {
		r.wrong(n, at, "write init: NAME for a new cluster, or join: TOKEN", "needs exactly one of init and join")
	}
}

func (r *reader) root(n *yaml.Node, at string, w *Root) {
	ok := r.mapping(n, at,
		field{"password", "", func(n *yaml.Node, at string) { w.Password = r.checked(n, at, CheckPassword) }},
		field{"passwordHash", "", func(n *yaml.Node, at string) { w.PasswordHash = r.checked(n, at, checkHash) }},
		field{"sshKeys", "", func(n *yaml.Node, at string) {
			r.each(n, at, 64, func(n *yaml.Node, at string) {
				w.SSHKeys = append(w.SSHKeys, strings.TrimSpace(r.checked(n, at, CheckSSHKey)))
			})
		}},
	)
	switch {
	case !ok:
	case w.Password != "" && w.PasswordHash != "":
		r.wrong(n, at, "keep passwordHash", "has both a password and a hash of one")
	case len(n.Content) == 0:
		r.wrong(n, at, "write password:, passwordHash: or sshKeys:", "nobody could log in")
	}
}

func (r *reader) after(n *yaml.Node, at string, a *After) {
	s, ok := r.text(n, at, "write reboot or poweroff")
	if *a = After(s); ok && *a != Reboot && *a != PowerOff {
		r.wrong(n, at, "write reboot or poweroff", "%q is neither", clip(s))
	}
}
