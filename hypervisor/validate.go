package hypervisor

import (
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/basalt-gpu/basalt/api"
)

// Limits of a domain.
const (
	MaxVCPUs       = 255      // the limit of q35 without an IOMMU
	MinMemoryBytes = 16 << 20 // SeaBIOS and a boot sector fit
	MaxMemoryBytes = 16 << 40
	MaxDisks       = 16
	MaxCDROMs      = 4
	MaxNICs        = 8
	MaxLayers      = 128 // below a disk

	// maxSocketPath is the size of sockaddr_un's sun_path minus its final zero
	// (unix(7)).
	maxSocketPath = 107
	maxPath       = 4095
	maxSerial     = 20 // VIRTIO_BLK_ID_BYTES, virtio 1.2 section 5.2.6
	maxCmdline    = 2047
	maxMonitors   = 16
	maxQoS        = 1_000_000_000_000_000 // libvirt's limit, QEMU_BLOCK_IOTUNE_MAX
	mib           = 1 << 20
)

var (
	idForm     = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	serialForm = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)
	hostForm   = regexp.MustCompile(`^[A-Za-z0-9:.-]{1,253}$`)
	rbdForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
	uuidForm   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	tapForm    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`) // IFNAMSIZ minus its final zero
)

// Validate returns what is wrong with the domain: an *api.Error that names the
// field, or nil. Valid values cannot break out of their place in the XML or in
// QEMU's command line.
func (d Domain) Validate() error {
	switch {
	case !idForm.MatchString(string(d.ID)):
		return invalid("id", "%q is not a valid instance ID", d.ID)
	case !idForm.MatchString(string(d.Node)):
		return invalid("node", "%q is not a valid node ID", d.Node)
	case len(d.Name) > 253 || !printable(d.Name):
		return invalid("name", "longer than 253 bytes, or contains control characters")
	case d.VCPUs < 1 || d.VCPUs > MaxVCPUs:
		return invalid("vcpus", "%d is out of range, want 1 to %d", d.VCPUs, MaxVCPUs)
	case d.MemoryBytes < MinMemoryBytes || d.MemoryBytes > MaxMemoryBytes || d.MemoryBytes%mib != 0:
		return invalid("memoryBytes", "%d bytes are not valid, want a multiple of 1 MiB from 16 MiB to 16 TiB", d.MemoryBytes)
	case d.HugePages != 0 && d.HugePages != 2*mib && d.HugePages != 1024*mib:
		return invalid("hugePages", "%d bytes are not a size of huge pages, want 2 MiB or 1 GiB", d.HugePages)
	case d.HugePages != 0 && d.MemoryBytes%d.HugePages != 0:
		return invalid("hugePages", "%d bytes of memory are not a whole number of pages of %d bytes", d.MemoryBytes, d.HugePages)
	case d.HugePages != 0 && d.VGPUSocket != "":
		return invalid("hugePages", "the workers of a virtual GPU map single pages of the guest's memory, not huge ones")
	case d.Accelerator != KVM && d.Accelerator != TCG:
		return invalid("accelerator", "unknown accelerator %q, want kvm or tcg", d.Accelerator)
	case d.Machine != "" && !machineForm.MatchString(d.Machine):
		return invalid("machine", "%q is not a versioned machine type, e.g. pc-q35-10.0", d.Machine)
	case len(d.Disks) > MaxDisks || len(d.CDROMs) > MaxCDROMs || len(d.NICs) > MaxNICs:
		return invalid("disks", "too many devices, want at most %d disks, %d discs and %d network interfaces", MaxDisks, MaxCDROMs, MaxNICs)
	}
	if err := d.validateCells(); err != nil {
		return err
	}
	if d.CPU != nil {
		if err := d.CPU.Validate(); err != nil {
			return err
		}
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
	if err := d.validateFirmware(); err != nil {
		return err
	}
	if err := d.validateDevices(); err != nil {
		return err
	}
	return d.validateBoot()
}

func (d Domain) validateDevices() error {
	seen := map[string]bool{}
	for _, disk := range d.Disks {
		if err := disk.Validate(); err != nil {
			return err
		}
		if disk.Serial != "" && seen[disk.Serial] {
			return invalid("disks.serial", "two disks have serial %q", disk.Serial)
		}
		seen[disk.Serial] = true
	}
	for _, c := range d.CDROMs {
		if err := checkPath("cdroms.path", c.Path, true, maxPath); err != nil {
			return err
		}
		if err := checkSerial("cdroms.serial", c.Serial); err != nil {
			return err
		}
	}
	if err := d.validateDrives(); err != nil {
		return err
	}
	for _, n := range d.NICs {
		if err := n.Validate(); err != nil {
			return err
		}
		if seen["mac "+n.MAC] {
			return invalid("nics.mac", "two network interfaces have MAC address %s", n.MAC)
		}
		seen["mac "+n.MAC] = true
	}
	return nil
}

// Validate returns what is wrong with the disk: an *api.Error, or nil.
func (k Disk) Validate() error {
	switch {
	case k.RBD != nil && k.Path != "":
		return invalid("disks.path", "a disk needs either a file or a Ceph image")
	case k.RBD != nil && k.Format != "raw":
		return invalid("disks.format", "format %q is not supported for a Ceph image, want raw", k.Format)
	case k.RBD != nil && len(k.Backing) > 0:
		return invalid("disks.backing", "a Ceph image cannot have layers")
	case len(k.Backing) > MaxLayers:
		return invalid("disks.backing", "too many layers, want at most %d", MaxLayers)
	}
	if k.RBD != nil {
		if err := k.RBD.validate(); err != nil {
			return err
		}
	} else if err := checkFile("disks", k.Path, k.Format); err != nil {
		return err
	}
	if err := checkSecret("disks.secret", k.Secret, false); err != nil {
		return err
	}
	for _, l := range k.Backing {
		if err := checkFile("disks.backing", l.Path, l.Format); err != nil {
			return err
		}
		if err := checkSecret("disks.backing.secret", l.Secret, false); err != nil {
			return err
		}
	}
	if err := checkSerial("disks.serial", k.Serial); err != nil {
		return err
	}
	switch k.Cache {
	case "", "none", "writeback", "unsafe":
	default:
		return invalid("disks.cache", "unknown cache mode %q, want none, writeback or unsafe", k.Cache)
	}
	switch k.AIO {
	case "", "threads":
	case "native", "io_uring":
		if k.RBD != nil || k.Cache != "none" {
			return invalid("disks.aio", "%s is for files that are opened with cache mode none", k.AIO)
		}
	default:
		return invalid("disks.aio", "%q is not a way of input and output, want threads, native or io_uring", k.AIO)
	}
	return k.QoS.Validate()
}

// Validate returns what is wrong with the limits: an *api.Error, or nil.
func (q QoS) Validate() error {
	for _, n := range []int64{q.ReadIOPS, q.WriteIOPS, q.ReadBytesPerSecond, q.WriteBytesPerSecond} {
		if n < 0 || n > maxQoS {
			return invalid("disks.qos", "%d is out of range, want 0 to %d", n, int64(maxQoS))
		}
	}
	return nil
}

func (r *RBD) validate() error {
	switch {
	case !rbdForm.MatchString(r.Pool):
		return invalid("disks.rbd.pool", "%q is not a valid pool name", r.Pool)
	case !rbdForm.MatchString(r.Image):
		return invalid("disks.rbd.image", "%q is not a valid image name", r.Image)
	case len(r.Monitors) == 0 || len(r.Monitors) > maxMonitors:
		return invalid("disks.rbd.monitors", "%d monitors, want 1 to %d", len(r.Monitors), maxMonitors)
	case r.User != "" && !rbdForm.MatchString(r.User):
		return invalid("disks.rbd.user", "%q is not a valid user name", r.User)
	}
	for _, m := range r.Monitors {
		if _, _, err := splitMonitor(m); err != nil {
			return err
		}
	}
	return checkSecret("disks.rbd.secretUUID", r.SecretUUID, r.User != "")
}

// splitMonitor splits the address of a monitor into host and port.
func splitMonitor(m string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(m)
	n, e := strconv.ParseUint(port, 10, 16)
	if err != nil || e != nil || n == 0 || !hostForm.MatchString(host) {
		return "", "", invalid("disks.rbd.monitors", "%q is not a valid host and port", m)
	}
	return host, port, nil
}

// Validate returns what is wrong with the card: an *api.Error, or nil.
func (n NIC) Validate() error {
	if mac, err := net.ParseMAC(n.MAC); err != nil || len(mac) != 6 || mac[0]&1 != 0 || mac.String() != n.MAC {
		return invalid("nics.mac", "%q is not a unicast MAC address in lower case", n.MAC)
	}
	if !tapForm.MatchString(n.Tap) || n.Tap == "." || n.Tap == ".." {
		return invalid("nics.tap", "%q is not a valid network device name", n.Tap)
	}
	if n.MTU != 0 && (n.MTU < 68 || n.MTU > 65535) {
		return invalid("nics.mtu", "%d is out of range, want 68 to 65535", n.MTU)
	}
	if n.Queues < 0 || n.Queues > MaxNICQueues {
		return invalid("nics.queues", "%d is out of range, want 0 to %d", n.Queues, MaxNICQueues)
	}
	return nil
}

func checkFile(field, path, format string) error {
	if err := checkPath(field+".path", path, true, maxPath); err != nil {
		return err
	}
	if format != "raw" && format != "qcow2" {
		return invalid(field+".format", "unknown format %q, want raw or qcow2", format)
	}
	return nil
}

func checkSecret(field, uuid string, required bool) error {
	if (uuid != "" || required) && !uuidForm.MatchString(uuid) {
		return invalid(field, "%q is not the UUID of a secret", uuid)
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
		return invalid("boot.cmdline", "longer than %d bytes, or contains control characters", maxCmdline)
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
		return invalid(field, "%q is not a clean absolute path", path)
	case len(path) > limit:
		return invalid(field, "%q is longer than %d bytes", path, limit)
	case !printable(path):
		return invalid(field, "%q contains control characters", path)
	}
	return nil
}

func checkSerial(field, s string) error {
	if len(s) > maxSerial || !serialForm.MatchString(s) {
		return invalid(field, "%q is not valid, want at most %d letters, digits, '_', '.', '-'", s, maxSerial)
	}
	return nil
}

// printable reports whether s is UTF-8 that XML can contain unescaped: no
// control characters and no noncharacters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF || r == utf8.RuneError
	})
}

func invalid(field, format string, args ...any) error {
	return api.Errorf(api.CodeInvalid, format, args...).At(field)
}
