package answers

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/nfs"
	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

// Bad is an invalid answer: the reason, and what to write instead. The text interface
// shows the same two sentences as the validator.
type Bad struct{ Reason, Instead string }

func (b *Bad) Error() string {
	if b.Instead == "" {
		return b.Reason
	}
	return b.Reason + ": " + b.Instead
}

func bad(instead, reason string, args ...any) error {
	return &Bad{fmt.Sprintf(reason, args...), instead}
}

// CheckHostname checks the node's host name, which is also its name in the cluster.
func CheckHostname(s string) error { return checkName(s, "localhost") }

// CheckClusterName checks the name of a new cluster.
func CheckClusterName(s string) error { return checkName(s) }

func checkName(s string, reserved ...string) error {
	if api.ValidateName(s) != nil || len(s) > 63 {
		return bad("write 1 to 63 lowercase letters, digits and hyphens that start and end with a letter or digit, without a domain", "%q cannot be a name", strictyaml.Clip(s))
	}
	for _, r := range reserved {
		if s == r {
			return bad("choose another name", "%q is taken by every machine", s)
		}
	}
	return nil
}

var (
	serverName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	interfaceName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$`)
	serialName    = regexp.MustCompile(`^(tty(S|AMA|USB)[0-9]{1,2}(,[0-9]{4,7})?|none)$`)
	hashForm      = regexp.MustCompile(`^\$(y|gy|7|6|5|2[aby])\$[./A-Za-z0-9$=,]{10,240}$`)
)

// CheckServer checks a host name or an address.
func CheckServer(s string) error {
	if _, err := netip.ParseAddr(s); err == nil || serverName.MatchString(s) {
		return nil
	}
	return bad("write a name such as ntp.example.net, or an address", "%q is not a server", strictyaml.Clip(s))
}

func checkInterface(s string) error {
	if !interfaceName.MatchString(s) || s == "lo" {
		return bad("write a name from `basalt-installer machine`, such as eno1", "%q is not a network card", strictyaml.Clip(s))
	}
	return nil
}

// CheckSerial checks the serial console of the installed node.
func CheckSerial(s string) error {
	if !serialName.MatchString(s) {
		return bad("write ttyS0, ttyS0,115200 or none", "%q is not a serial console", strictyaml.Clip(s))
	}
	return nil
}

// CheckSharedDir checks a directory that every node mounts, or an export of an NFS
// server, which basaltd mounts.
func CheckSharedDir(s string) error {
	if strings.HasPrefix(s, nfs.Scheme) {
		if _, err := nfs.Parse(s); err != nil {
			return bad("write nfs://SERVER/PATH, such as nfs://192.0.2.9/srv/basalt", "%q is not an export of an NFS server", strictyaml.Clip(s))
		}
		return nil
	}
	if !path.IsAbs(s) || path.Clean(s) != s || strings.ContainsAny(s, "\n\r\x00:#\"'\\") || len(s) > 200 {
		return bad("write a path such as /srv/shared", "%q is not an absolute path", strictyaml.Clip(s))
	}
	for _, system := range []string{"/", "/srv/basalt", "/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/usr", "/var"} {
		if s == system {
			return bad("write a directory of its own, such as /srv/shared", "%s belongs to the system", s)
		}
	}
	return nil
}

const sizeForm = "write a range such as 100GiB..2TiB, 500GB.. or ..1TiB"

var sizeNumber = regexp.MustCompile(`^([0-9]{1,6})(\.[0-9]{1,3})?\s*(MiB|GiB|TiB|MB|GB|TB)$`)

var units = map[string]float64{"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "MB": 1e6, "GB": 1e9, "TB": 1e12}

// ParseSize parses a range of sizes.
func ParseSize(s string) (Size, error) {
	lo, hi, ok := strings.Cut(s, "..")
	if !ok {
		return Size{}, bad(sizeForm, "%q is not a range of sizes", strictyaml.Clip(s))
	}
	var z Size
	for _, end := range []struct {
		text string
		to   *uint64
	}{{lo, &z.Min}, {hi, &z.Max}} {
		text := strings.TrimSpace(end.text)
		if text == "" {
			continue
		}
		bytes, err := parseBytes(text)
		if err != nil {
			return z, bad(sizeForm, "%q is not a size with a unit", strictyaml.Clip(text))
		}
		*end.to = bytes
	}
	if z.Min == 0 && z.Max == 0 || z.Max != 0 && z.Max < z.Min {
		return z, bad(sizeForm, "%q is an empty range", strictyaml.Clip(s))
	}
	return z, nil
}

// ParseAddress parses the address of a card, with its prefix length.
func ParseAddress(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.Prefix{}, bad(fmt.Sprintf("write %s/%d if the network has that size", a, usualBits(a)), "%q has no prefix length", strictyaml.Clip(s))
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, bad("write dhcp, or an address such as 192.0.2.11/24", "%q is not an address", strictyaml.Clip(s))
	}
	a := p.Addr()
	switch {
	case a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.Is4In6() || p.Bits() == 0:
		return p, bad("write an address of this node's network, such as 192.0.2.11/24", "%s cannot be a node's address", a)
	case a.Is4() && p.Bits() < 31 && a == p.Masked().Addr():
		return p, bad("write the node's own address, such as "+a.Next().String()+"/"+strconv.Itoa(p.Bits()), "%s is the network itself", a)
	case a.Is4() && p.Bits() < 31 && a == broadcast(p):
		return p, bad("write another address of the network", "%s is the network's broadcast address", a)
	}
	return p, nil
}

func usualBits(a netip.Addr) int {
	if a.Is4() {
		return 24
	}
	return 64
}

func broadcast(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	n := binary.BigEndian.Uint32(b[:]) | (1<<(32-p.Bits()) - 1)
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// CheckGateway checks the gateway of a path.
func CheckGateway(p Path, g netip.Addr) error {
	switch {
	case !g.IsValid():
		return nil
	case p.DHCP:
		return bad("remove it, or give the address too", "the gateway comes with DHCP")
	case !p.Address.IsValid():
		return nil
	case g == p.Address.Addr():
		return bad("write the router's address", "%s is the node's own address", g)
	case !p.Address.Contains(g) && !g.IsLinkLocalUnicast():
		return bad("write an address in "+p.Address.Masked().String(), "%s cannot be reached from %s", g, p.Address)
	}
	return nil
}

// CheckSecond checks the second path: it must use another card and another network,
// since it could not replace the first otherwise.
func CheckSecond(first, second Path) error {
	switch {
	case first.Interface != "" && first.Interface == second.Interface, first.MAC != "" && first.MAC == second.MAC:
		return bad("name the other card, or remove second", "the second path is the same card as the first")
	case first.Address.IsValid() && second.Address.IsValid() && first.Address.Overlaps(second.Address):
		return bad("give the second path a network of its own", "%s and %s are one network", first.Address, second.Address)
	}
	return nil
}

// MinPassword is the least length of a password.
const MinPassword = 8

// CheckPassword checks a password in plain text.
func CheckPassword(s string) error {
	switch {
	case len(s) < MinPassword:
		return bad(fmt.Sprintf("take at least %d; a few words are easy to remember", MinPassword), "the password has %d characters", len(s))
	case len(s) > 256 || strings.ContainsAny(s, "\n\r\x00"):
		return bad("take at most 256 characters in one line", "the password cannot be typed at a login")
	}
	return nil
}

func checkHash(s string) error {
	if !hashForm.MatchString(s) {
		return bad("write what `mkpasswd` or `openssl passwd -6` prints, in single quotes", "is not a password hash in crypt format")
	}
	return nil
}

// CheckSSHKey checks one line of authorized_keys without options.
func CheckSSHKey(s string) error {
	const instead = "paste the line of a .pub file: ssh-ed25519 AAAA… name"
	parts := strings.Fields(s)
	if strings.Contains(s, "PRIVATE KEY") {
		return bad(instead, "that is a private key")
	}
	if len(parts) < 2 || len(s) > 16<<10 || strings.ContainsAny(s, "\n\r\x00") {
		return bad(instead, "%q is no SSH key", strictyaml.Clip(s))
	}
	blob, err := base64.StdEncoding.DecodeString(parts[1])
	// The blob begins with the key type as a string (RFC 4253, section 6.6).
	if err != nil || len(blob) < 4 || uint64(len(blob)) < 4+uint64(binary.BigEndian.Uint32(blob)) ||
		string(blob[4:4+binary.BigEndian.Uint32(blob)]) != parts[0] {
		return bad(instead, "%q is no SSH key, or only a part of one", strictyaml.Clip(s))
	}
	return nil
}
