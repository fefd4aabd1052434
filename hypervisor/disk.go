package hypervisor

import (
	"strings"

	lx "libvirt.org/go/libvirtxml"
)

// Disk is a virtio-blk disk: a file of the host, or an image in Ceph.
type Disk struct {
	Path     string // of the file; empty: RBD
	RBD      *RBD
	Format   string // raw or qcow2; never guessed from the content, which the guest writes
	Serial   string // the guest finds it as /dev/disk/by-id/virtio-SERIAL; at most 20 bytes
	ReadOnly bool
	Cache    string // none, writeback (the default), unsafe
	// AIO is how QEMU asks the kernel to read and write a file: threads (the
	// default), native or io_uring. The last two go with Cache none only: through
	// the page cache they would block QEMU's threads that must not block.
	AIO string
	// Secret is the UUID of the secret with the key of the disk's LUKS; empty: it
	// is not encrypted. It must be set (Driver.SetSecret) when a QEMU opens the
	// disk.
	Secret string
	// Backing are the layers below, from the top. Empty: QEMU reads the chain
	// from the file's header, which does not suffice if one of them is encrypted.
	Backing []Layer
	QoS     QoS
}

// Layer is a file below a disk in its chain; it is only read.
type Layer struct {
	Path   string
	Format string
	Secret string // see Disk.Secret
}

// RBD is an image in Ceph, which QEMU opens with librbd.
type RBD struct {
	Pool, Image string
	Monitors    []string // HOST:PORT
	User        string   // without "client."; empty: the cluster requires no key
	SecretUUID  string   // of the secret with the user's key
}

// QoS limits the operations and bytes of a disk per second. 0: no limit.
type QoS struct {
	ReadIOPS, WriteIOPS                     int64
	ReadBytesPerSecond, WriteBytesPerSecond int64
}

// DiskDevice returns libvirt's name of the i-th disk.
func DiskDevice(i int) string { return "vd" + letter(i) }

func letter(i int) string { return string(rune('a' + i)) }

// diskIndex returns the index of the disk with libvirt's name, or -1 if it is
// not a disk of Basalt.
func diskIndex(device string) int {
	if len(device) != 3 || !strings.HasPrefix(device, "vd") || device[2] < 'a' || device[2] >= 'a'+MaxDisks {
		return -1
	}
	return int(device[2] - 'a')
}

// ioThreads is the number of I/O threads of a domain. Disk I/O runs there, and
// not in QEMU's main thread, which also answers libvirt and migrates the
// guest's memory.
const ioThreads = 1

// ioThread returns the number of the I/O thread of a disk, as a new pointer
// for each.
func ioThread() *uint {
	first := uint(1)
	return &first
}

// xml returns the XML of the disk at index i.
func (k Disk) xml(i int) lx.DomainDisk {
	x := lx.DomainDisk{
		Device: "disk",
		Driver: &lx.DomainDiskDriver{
			Name: "qemu", Type: k.Format, Cache: k.Cache, IO: k.AIO, Discard: "unmap", IOThread: ioThread(),
			// If the host's storage is full, the guest is paused instead of getting an
			// error, and resumes when there is space again.
			ErrorPolicy: "enospace",
		},
		Source:  k.source(),
		IOTune:  k.QoS.xml(),
		Target:  &lx.DomainDiskTarget{Dev: DiskDevice(i), Bus: "virtio"},
		Serial:  k.Serial,
		Address: portAddress(diskPort + i),
	}
	at := &x.BackingStore
	for _, l := range k.Backing {
		b := &lx.DomainDiskBackingStore{
			Format: &lx.DomainDiskFormat{Type: l.Format},
			Source: &lx.DomainDiskSource{File: &lx.DomainDiskSourceFile{File: l.Path}, Encryption: luks(l.Secret)},
		}
		*at, at = b, &b.BackingStore
	}
	if len(k.Backing) > 0 {
		*at = &lx.DomainDiskBackingStore{} // end of the chain
	}
	if k.ReadOnly {
		x.ReadOnly = &lx.DomainDiskReadOnly{}
	}
	return x
}

func (k Disk) source() *lx.DomainDiskSource {
	s := &lx.DomainDiskSource{Encryption: luks(k.Secret)}
	if k.RBD == nil {
		s.File = &lx.DomainDiskSourceFile{File: k.Path}
		return s
	}
	s.Network = &lx.DomainDiskSourceNetwork{Protocol: "rbd", Name: k.RBD.Pool + "/" + k.RBD.Image}
	for _, m := range k.RBD.Monitors {
		if host, port, err := splitMonitor(m); err == nil { // Validate has checked them
			s.Network.Hosts = append(s.Network.Hosts, lx.DomainDiskSourceHost{Name: host, Port: port})
		}
	}
	if k.RBD.User != "" {
		s.Network.Auth = &lx.DomainDiskAuth{Username: k.RBD.User, Secret: &lx.DomainDiskSecret{Type: "ceph", UUID: k.RBD.SecretUUID}}
	}
	return s
}

// same reports whether s, as libvirt has it, is the disk's source. It ignores
// the monitors of a cluster, which may change.
func (k Disk) same(s *lx.DomainDiskSource) bool {
	switch {
	case s == nil:
		return false
	case k.RBD != nil:
		return s.Network != nil && s.Network.Protocol == "rbd" && s.Network.Name == k.RBD.Pool+"/"+k.RBD.Image
	}
	return s.File != nil && s.File.File == k.Path
}

func luks(secret string) *lx.DomainDiskEncryption {
	if secret == "" {
		return nil
	}
	return &lx.DomainDiskEncryption{Format: "luks", Secrets: []lx.DomainDiskSecret{{Type: "passphrase", UUID: secret}}}
}

func (q QoS) xml() *lx.DomainDiskIOTune {
	if q == (QoS{}) {
		return nil
	}
	return &lx.DomainDiskIOTune{
		ReadIopsSec: uint64(q.ReadIOPS), WriteIopsSec: uint64(q.WriteIOPS),
		ReadBytesSec: uint64(q.ReadBytesPerSecond), WriteBytesSec: uint64(q.WriteBytesPerSecond),
	}
}

// xml returns the XML of the drive at index i. It is on SCSI and not SATA: the
// kernels of cloud images always have virtio-scsi, but not always AHCI.
func (c CDROM) xml(i int) lx.DomainDisk {
	return lx.DomainDisk{
		Device:   "cdrom",
		Driver:   &lx.DomainDiskDriver{Name: "qemu", Type: "raw"},
		Source:   &lx.DomainDiskSource{File: &lx.DomainDiskSourceFile{File: c.Path}},
		Target:   &lx.DomainDiskTarget{Dev: "sd" + letter(i), Bus: "scsi"},
		ReadOnly: &lx.DomainDiskReadOnly{},
		Serial:   c.Serial,
	}
}
