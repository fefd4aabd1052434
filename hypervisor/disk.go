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
	// default), native or io_uring. The last two go with Cache none only: through the
	// page cache they would wait where nothing may.
	AIO string
	// Secret is the UUID of the secret that opens the disk's LUKS; empty: it is
	// not encrypted. It must be set (Driver.SetSecret) when a QEMU opens it.
	Secret string
	// Backing are the layers below, from the top. Empty: as the file says, which
	// is not enough where one of them is encrypted.
	Backing []Layer
	QoS     QoS
}

// Layer below a disk: a file that is only read.
type Layer struct {
	Path   string
	Format string
	Secret string // as Disk.Secret
}

// RBD is an image in Ceph. QEMU reaches it by librbd.
type RBD struct {
	Pool, Image string
	Monitors    []string // HOST:PORT
	User        string   // without "client."; empty: the cluster asks for no key
	SecretUUID  string   // of the secret that is the user's key
}

// QoS bounds what a disk does in a second. 0: no bound.
type QoS struct {
	ReadIOPS, WriteIOPS                     int64
	ReadBytesPerSecond, WriteBytesPerSecond int64
}

// DiskDevice is what libvirt calls the i-th disk.
func DiskDevice(i int) string { return "vd" + letter(i) }

func letter(i int) string { return string(rune('a' + i)) }

// place of the disk that libvirt calls so; -1: it is not ours.
func place(device string) int {
	if len(device) != 3 || !strings.HasPrefix(device, "vd") || device[2] < 'a' || device[2] >= 'a'+MaxDisks {
		return -1
	}
	return int(device[2] - 'a')
}

// ioThreads of a domain. What a disk does is done there, and not in the thread that
// also answers libvirt and moves the guest's memory.
const ioThreads = 1

// ioThread of a disk: each has a copy of the number.
func ioThread() *uint {
	first := uint(1)
	return &first
}

// xml of the disk in the i-th place.
func (k Disk) xml(i int) lx.DomainDisk {
	x := lx.DomainDisk{
		Device: "disk",
		Driver: &lx.DomainDiskDriver{
			Name: "qemu", Type: k.Format, Cache: k.Cache, IO: k.AIO, Discard: "unmap", IOThread: ioThread(),
			// A full disk on the host stops the guest, which sees no error and
			// goes on when there is room again.
			ErrorPolicy: "enospace",
		},
		Source:  k.source(),
		IOTune:  k.QoS.xml(),
		Target:  &lx.DomainDiskTarget{Dev: DiskDevice(i), Bus: "virtio"},
		Serial:  k.Serial,
		Address: behind(diskPort + i),
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
		*at = &lx.DomainDiskBackingStore{} // there is nothing below
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
		if host, port, err := splitMonitor(m); err == nil { // Validate has seen to it
			s.Network.Hosts = append(s.Network.Hosts, lx.DomainDiskSourceHost{Name: host, Port: port})
		}
	}
	if k.RBD.User != "" {
		s.Network.Auth = &lx.DomainDiskAuth{Username: k.RBD.User, Secret: &lx.DomainDiskSecret{Type: "ceph", UUID: k.RBD.SecretUUID}}
	}
	return s
}

// same reports whether the source that libvirt knows is the disk's. The monitors
// of a cluster may change.
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

// SCSI and not SATA: the kernels of cloud images have virtio-scsi for certain,
// AHCI not always.
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
