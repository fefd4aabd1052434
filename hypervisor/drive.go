package hypervisor

import (
	lx "libvirt.org/go/libvirtxml"

	"github.com/basalt-gpu/basalt/api"
)

// MaxDrives is the number of CD drives that a domain can have.
const MaxDrives = 2

// Drive is a CD drive for the user's media. It is on SATA, for which
// installation media have a driver; SATA has no hotplug, so a machine keeps
// the drives that it was started with, and only their media change.
type Drive struct {
	// Medium is the path of a raw file, which is only read; empty: no medium.
	Medium string
}

// driveIndex returns the index of the drive with libvirt's name, or -1 if it
// is not a drive for the user's media. The names of CDROMs come before.
func driveIndex(k lx.DomainDisk) int {
	if k.Device != "cdrom" || k.Target == nil || k.Target.Bus != "sata" {
		return -1
	}
	for i := range MaxDrives {
		if k.Target.Dev == driveDevice(i) {
			return i
		}
	}
	return -1
}

func driveDevice(i int) string { return "sd" + letter(MaxCDROMs+i) }

// xml returns the XML of the drive at index i. order is its place in the boot
// order; 0: it is not booted from.
func (v Drive) xml(i int, order uint) lx.DomainDisk {
	zero, unit := uint(0), uint(i)
	return lx.DomainDisk{
		Device:   "cdrom",
		Driver:   &lx.DomainDiskDriver{Name: "qemu", Type: "raw"},
		Source:   mediumSource(v.Medium),
		Target:   &lx.DomainDiskTarget{Dev: driveDevice(i), Bus: "sata"},
		ReadOnly: &lx.DomainDiskReadOnly{},
		Boot:     bootOrder(order),
		Address:  &lx.DomainAddress{Drive: &lx.DomainAddressDrive{Controller: &zero, Bus: &zero, Target: &zero, Unit: &unit}},
	}
}

func mediumSource(path string) *lx.DomainDiskSource {
	if path == "" {
		return nil
	}
	return &lx.DomainDiskSource{File: &lx.DomainDiskSourceFile{File: path}}
}

func bootOrder(order uint) *lx.DomainDeviceBoot {
	if order == 0 {
		return nil
	}
	return &lx.DomainDeviceBoot{Order: order}
}

// bootOrders returns the places of the first disk and the first drive in the
// boot order; both are 0 without drives, when os() names the disk.
func (d Domain) bootOrders() (disk, drive uint) {
	switch {
	case d.Boot != nil || len(d.Drives) == 0:
		return 0, 0
	case d.BootMedium:
		return 2, 1
	}
	return 1, 2
}

func (d Domain) validateDrives() error {
	if len(d.Drives) > MaxDrives {
		return invalid("drives", "%d CD drives, want at most %d", len(d.Drives), MaxDrives)
	}
	if d.BootMedium && len(d.Drives) == 0 {
		return invalid("bootMedium", "the machine has no CD drive to boot from")
	}
	for _, v := range d.Drives {
		if err := checkPath("drives.medium", v.Medium, false, maxPath); err != nil {
			return err
		}
	}
	return nil
}

// Drives returns the drives of the domain, with their media.
func (a Attached) Drives() (all []Drive) {
	for i := range MaxDrives {
		k, ok := a.drives[i]
		if !ok {
			break
		}
		all = append(all, Drive{Medium: mediumOf(k)})
	}
	return all
}

func mediumOf(k lx.DomainDisk) string {
	if k.Source == nil || k.Source.File == nil {
		return ""
	}
	return k.Source.File.File
}

// Medium returns the XML of the drive with another medium, or with none if the
// path is empty. It returns "" if the drive has that medium already, and
// wrong_state if there is no such drive.
func (a Attached) Medium(id api.InstanceID, drive int, path string) (string, error) {
	if err := CheckMedium(drive, path); err != nil {
		return "", err
	}
	k, ok := a.drives[drive]
	if !ok {
		return "", NoDrive(id)
	}
	if mediumOf(k) == path {
		return "", nil
	}
	k.Source, k.BackingStore = mediumSource(path), nil
	return k.Marshal()
}

// CheckMedium checks the parameters of Devices.SetMedium.
func CheckMedium(drive int, path string) error {
	if drive < 0 || drive >= MaxDrives {
		return invalid("drive", "%d is not the number of a CD drive, want 0 to %d", drive, MaxDrives-1)
	}
	return checkPath("medium", path, false, maxPath)
}

// NoDrive returns the error for a machine without the CD drive.
func NoDrive(id api.InstanceID) error {
	return api.Errorf(api.CodeState, "instance %s has no such CD drive", id).WithHint("it gets its drives with its next start: restart it")
}

// MediumHeld returns the error for a guest that does not release a medium.
func MediumHeld(id api.InstanceID) error {
	return api.Errorf(api.CodeInUse, "the guest of instance %s has locked its CD drive", id).
		WithHint("unmount or eject the medium in the guest, or restart the instance")
}
