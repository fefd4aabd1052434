package hypervisor

import (
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/basalt-gpu/basalt/api"
)

// Limits of a domain.
const (
	MaxVCPUs       = 255      // what q35 takes without an IOMMU
	MinMemoryBytes = 16 << 20 // SeaBIOS and a boot sector fit
	MaxMemoryBytes = 16 << 40
	MaxDisks       = 16
	MaxCDROMs      = 4
	MaxNICs        = 8

	// maxSocketPath is sockaddr_un's sun_path less its final zero (unix(7)).
	maxSocketPath = 107
	maxPath       = 4095
	maxSerial     = 20 // VIRTIO_BLK_ID_BYTES, virtio 1.2 section 5.2.6
	maxCmdline    = 2047
	mib           = 1 << 20
)

var (
	idForm     = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	serialForm = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)
	tapForm    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`) // IFNAMSIZ less its zero
)

// Validate says what is wrong with the domain: an *api.Error that names the
// field, or nil. What it lets through cannot leave its place in the XML or in
// QEMU's command line.
func (d Domain) Validate() error {
	switch {
	case !idForm.MatchString(string(d.ID)):
		return invalid("id", "not an instance id: %q", d.ID)
	case !idForm.MatchString(string(d.Node)):
		return invalid("node", "not a node id: %q", d.Node)
	case len(d.Name) > 253 || !printable(d.Name):
		return invalid("name", "longer than 253 bytes, or with control characters")
	case d.VCPUs < 1 || d.VCPUs > MaxVCPUs:
		return invalid("vcpus", "%d is not between 1 and %d", d.VCPUs, MaxVCPUs)
	case d.MemoryBytes < MinMemoryBytes || d.MemoryBytes > MaxMemoryBytes || d.MemoryBytes%mib != 0:
		return invalid("memoryBytes", "%d is not a whole number of MiB from 16 MiB to 16 TiB", d.MemoryBytes)
	case d.Accelerator != KVM && d.Accelerator != TCG:
		return invalid("accelerator", "%q is neither kvm nor tcg", d.Accelerator)
	case len(d.Disks) > MaxDisks || len(d.CDROMs) > MaxCDROMs || len(d.NICs) > MaxNICs:
		return invalid("disks", "more than %d disks, %d discs or %d network cards", MaxDisks, MaxCDROMs, MaxNICs)
	}
	for _, p := range []struct {
		field, path string
		required    bool
		limit       int
	}{
		{"serialSocket", d.SerialSocket, true, maxSocketPath},
		{"serialLog", d.SerialLog, true, maxPath},
		{"agentSocket", d.AgentSocket, false, maxSocketPath},
		{"vncSocket", d.VNCSocket, false, maxSocketPath},
		{"vgpuSocket", d.VGPUSocket, false, maxSocketPath},
	} {
		if err := checkPath(p.field, p.path, p.required, p.limit); err != nil {
			return err
		}
	}
	if err := d.validateDevices(); err != nil {
		return err
	}
	return d.validateBoot()
}

func (d Domain) validateDevices() error {
	for _, disk := range d.Disks {
		if err := checkPath("disks.path", disk.Path, true, maxPath); err != nil {
			return err
		}
		if disk.Format != "raw" && disk.Format != "qcow2" {
			return invalid("disks.format", "%q is neither raw nor qcow2", disk.Format)
		}
		if err := checkSerial("disks.serial", disk.Serial); err != nil {
			return err
		}
		switch disk.Cache {
		case "", "none", "writeback", "unsafe":
		default:
			return invalid("disks.cache", "%q is none of none, writeback, unsafe", disk.Cache)
		}
	}
	for _, c := range d.CDROMs {
		if err := checkPath("cdroms.path", c.Path, true, maxPath); err != nil {
			return err
		}
		if err := checkSerial("cdroms.serial", c.Serial); err != nil {
			return err
		}
	}
	for _, n := range d.NICs {
		if mac, err := net.ParseMAC(n.MAC); err != nil || len(mac) != 6 || mac[0]&1 != 0 {
			return invalid("nics.mac", "%q is not a unicast Ethernet address", n.MAC)
		}
		if !tapForm.MatchString(n.Tap) || n.Tap == "." || n.Tap == ".." {
			return invalid("nics.tap", "%q is not a network device's name", n.Tap)
		}
		if n.MTU != 0 && (n.MTU < 68 || n.MTU > 65535) {
			return invalid("nics.mtu", "%d is not between 68 and 65535", n.MTU)
		}
	}
	return nil
}

func (d Domain) validateBoot() error {
	if d.Boot == nil {
		return nil
	}
	if err := checkPath("boot.kernel", d.Boot.Kernel, true, maxPath); err != nil {
		return err
	}
	if err := checkPath("boot.initrd", d.Boot.Initrd, false, maxPath); err != nil {
		return err
	}
	if len(d.Boot.Cmdline) > maxCmdline || !printable(d.Boot.Cmdline) {
		return invalid("boot.cmdline", "longer than %d bytes, or with control characters", maxCmdline)
	}
	return nil
}

func checkPath(field, path string, required bool, limit int) error {
	switch {
	case path == "" && !required:
		return nil
	case path == "":
		return invalid(field, "missing")
	case !filepath.IsAbs(path) || filepath.Clean(path) != path:
		return invalid(field, "%q is not an absolute path in its shortest form", path)
	case len(path) > limit:
		return invalid(field, "%q is longer than %d bytes", path, limit)
	case !printable(path):
		return invalid(field, "%q has control characters", path)
	}
	return nil
}

func checkSerial(field, s string) error {
	if len(s) > maxSerial || !serialForm.MatchString(s) {
		return invalid(field, "%q is not at most %d letters, digits, '_', '.', '-'", s, maxSerial)
	}
	return nil
}

// printable is UTF-8 that XML can hold as it is: no control characters, and
// none of the code points that are no characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF || r == utf8.RuneError
	})
}

func invalid(field, format string, args ...any) error {
	return api.Errorf(api.CodeInvalid, format, args...).At(field)
}
