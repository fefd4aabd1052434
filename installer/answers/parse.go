package answers

import (
	"net"
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

// reader reads an answer file.
type reader struct{ strictyaml.Reader }

// Parse parses an answer file. The error is Mistakes with all mistakes, in the file's
// order.
func Parse(data []byte) (Answers, error) {
	a := Answers{Serial: "ttyS0", After: Reboot}
	root, mistakes := strictyaml.Document(data, "start with disk:, erase:, hostname: …")
	if mistakes != nil {
		return a, mistakes
	}
	r := &reader{}
	r.answers(root, &a)
	if mistakes := r.Mistakes(); len(mistakes) > 0 {
		return a, mistakes
	}
	return a, nil
}

func (r *reader) answers(root *yaml.Node, a *Answers) {
	var erase, mirror *yaml.Node
	ok := r.Mapping(root, "",
		strictyaml.Field{Name: "disk", Required: "disk: only, or disk: {serial: …}", Read: func(n *yaml.Node, at string) { r.disk(n, at, &a.Disk) }},
		strictyaml.Field{Name: "mirror", Read: func(n *yaml.Node, at string) {
			mirror, a.Mirror = n, &Disk{}
			r.disk(n, at, a.Mirror)
		}},
		strictyaml.Field{Name: "erase", Required: "erase: with the disk's serial, or " + EraseAnything, Read: func(n *yaml.Node, at string) {
			erase, a.Erase = n, r.erase(n, at)
		}},
		strictyaml.Field{Name: "reinstall", Read: func(n *yaml.Node, at string) { a.Reinstall = r.Flag(n, at) }},
		strictyaml.Field{Name: "hostname", Required: "hostname: node1", Read: func(n *yaml.Node, at string) { a.Hostname = r.checked(n, at, CheckHostname) }},
		strictyaml.Field{Name: "network", Required: "network: {interface: eno1, address: dhcp}", Read: func(n *yaml.Node, at string) { r.network(n, at, &a.Network) }},
		strictyaml.Field{Name: "ntp", Read: func(n *yaml.Node, at string) {
			r.Each(n, at, 8, func(n *yaml.Node, at string) { a.NTP = append(a.NTP, r.checked(n, at, CheckServer)) })
		}},
		strictyaml.Field{Name: "cluster", Required: "cluster: {init: NAME} or {join: TOKEN}", Read: func(n *yaml.Node, at string) { r.cluster(n, at, &a.Cluster) }},
		strictyaml.Field{Name: "root", Required: "root: {password: …} or root: {sshKeys: […]}", Read: func(n *yaml.Node, at string) { r.root(n, at, &a.Root) }},
		strictyaml.Field{Name: "storage", Read: func(n *yaml.Node, at string) {
			r.Mapping(n, at,
				strictyaml.Field{Name: "sharedDir", Read: func(n *yaml.Node, at string) { a.SharedDir = r.checked(n, at, CheckSharedDir) }},
				strictyaml.Field{Name: "fileSystems", Read: func(n *yaml.Node, at string) { r.fileSystems(n, at, &a.FileSystems) }},
			)
		}},
		strictyaml.Field{Name: "console", Read: func(n *yaml.Node, at string) {
			r.Mapping(n, at, strictyaml.Field{Name: "serial", Read: func(n *yaml.Node, at string) {
				if a.Serial = r.checked(n, at, CheckSerial); a.Serial == "none" {
					a.Serial = ""
				}
			}})
		}},
		strictyaml.Field{Name: "gpuDriver", Read: func(n *yaml.Node, at string) { r.gpuDriver(n, at, a) }},
		strictyaml.Field{Name: "allowEmulation", Read: func(n *yaml.Node, at string) { a.AllowEmulation = r.Flag(n, at) }},
		strictyaml.Field{Name: "after", Read: func(n *yaml.Node, at string) { r.after(n, at, &a.After) }},
	)
	if ok && erase != nil {
		r.erasable(erase, a)
	}
	if mirror != nil && sameDisk(a.Disk, *a.Mirror) {
		r.Wrong(mirror, "mirror", "name the other disk, or remove mirror", "names the same disk as disk")
	}
}

// checked reads a text. check returns why it is invalid and what to write instead.
func (r *reader) checked(n *yaml.Node, at string, check func(string) error) string {
	s, ok := r.Text(n, at, "")
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
	if b, ok := err.(*Bad); ok { //nolint:errorlint // the checks return it unwrapped
		r.Wrong(n, at, b.Instead, "%s", b.Reason)
		return
	}
	r.Wrong(n, at, "", "%s", err)
}

func (r *reader) path(at string, p *Path) []strictyaml.Field {
	_ = at
	return []strictyaml.Field{
		{Name: "interface", Read: func(n *yaml.Node, at string) { p.Interface = r.checked(n, at, checkInterface) }},
		{Name: "mac", Read: func(n *yaml.Node, at string) {
			s, _ := r.Text(n, at, "write six bytes: 52:54:00:12:34:56")
			mac, err := net.ParseMAC(s)
			if s != "" && (err != nil || len(mac) != 6) {
				r.Wrong(n, at, "write six bytes: 52:54:00:12:34:56", "%q is not a MAC address", strictyaml.Clip(s))
			}
			p.MAC = mac.String()
		}},
		{Name: "address", Required: "address: dhcp, or address: 192.0.2.11/24", Read: func(n *yaml.Node, at string) {
			s, ok := r.Text(n, at, "write dhcp, or an address such as 192.0.2.11/24")
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
		r.Wrong(n, at, "write interface: eno1, or mac: 52:54:00:12:34:56", "needs exactly one of interface and mac")
	}
}

func (r *reader) network(n *yaml.Node, at string, w *Network) {
	if declares(n) {
		w.Declared = &hostnet.Network{}
		hostnet.Read(&r.Reader, n, at, w.Declared)
		return
	}
	var gateway, second *yaml.Node
	ok := r.Mapping(n, at, append(r.path(at, &w.Path),
		strictyaml.Field{Name: "gateway", Read: func(n *yaml.Node, at string) { gateway, w.Gateway = n, r.address(n, at) }},
		strictyaml.Field{Name: "dns", Read: func(n *yaml.Node, at string) {
			r.Each(n, at, 3, func(n *yaml.Node, at string) { w.DNS = append(w.DNS, r.address(n, at)) })
		}},
		strictyaml.Field{Name: "external", Read: func(n *yaml.Node, at string) { w.External = r.Flag(n, at) }},
		strictyaml.Field{Name: "second", Read: func(n *yaml.Node, at string) {
			second, w.Second = n, &Path{}
			if r.Mapping(n, at, r.path(at, w.Second)...) {
				r.card(n, at, *w.Second)
			}
		}},
	)...)
	if !ok {
		return
	}
	r.card(n, at, w.Path)
	if gateway != nil {
		r.because(gateway, strictyaml.Join(at, "gateway"), CheckGateway(w.Path, w.Gateway))
	}
	if second != nil {
		r.because(second, strictyaml.Join(at, "second"), CheckSecond(w.Path, *w.Second))
	}
}

// declares reports whether the network is a declaration: whether it has cards.
func declares(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "cards" {
			return true
		}
	}
	return false
}

func (r *reader) address(n *yaml.Node, at string) netip.Addr {
	const instead = "write an address such as 192.0.2.1"
	s, ok := r.Text(n, at, instead)
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
		r.Wrong(n, at, instead, "%q is not the address of a machine", strictyaml.Clip(s))
	}
	return a
}

func (r *reader) cluster(n *yaml.Node, at string, c *Cluster) {
	ok := r.Mapping(n, at,
		strictyaml.Field{Name: "init", Read: func(n *yaml.Node, at string) { c.Init = r.checked(n, at, CheckClusterName) }},
		strictyaml.Field{Name: "join", Read: func(n *yaml.Node, at string) {
			if s, ok := r.Text(n, at, tokenHint); ok {
				c.Token = strings.TrimSpace(s)
				_, err := ParseToken(c.Token)
				r.because(n, at, err)
			}
		}},
	)
	if ok && len(n.Content) != 2 {
		r.Wrong(n, at, "write init: NAME for a new cluster, or join: TOKEN", "needs exactly one of init and join")
	}
}

func (r *reader) root(n *yaml.Node, at string, w *Root) {
	ok := r.Mapping(n, at,
		strictyaml.Field{Name: "password", Read: func(n *yaml.Node, at string) { w.Password = r.checked(n, at, CheckPassword) }},
		strictyaml.Field{Name: "passwordHash", Read: func(n *yaml.Node, at string) { w.PasswordHash = r.checked(n, at, checkHash) }},
		strictyaml.Field{Name: "sshKeys", Read: func(n *yaml.Node, at string) {
			r.Each(n, at, 64, func(n *yaml.Node, at string) {
				w.SSHKeys = append(w.SSHKeys, strings.TrimSpace(r.checked(n, at, CheckSSHKey)))
			})
		}},
	)
	switch {
	case !ok:
	case w.Password != "" && w.PasswordHash != "":
		r.Wrong(n, at, "keep passwordHash", "has both a password and a hash of one")
	case len(n.Content) == 0:
		r.Wrong(n, at, "write password:, passwordHash: or sshKeys:", "nobody could sign in")
	}
}

func (r *reader) after(n *yaml.Node, at string, a *After) {
	s, ok := r.Text(n, at, "write reboot or poweroff")
	if *a = After(s); ok && *a != Reboot && *a != PowerOff {
		r.Wrong(n, at, "write reboot or poweroff", "%q is neither", strictyaml.Clip(s))
	}
}
