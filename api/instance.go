package api

import (
	"reflect"
	"slices"
	"strings"
)

// Limits of an instance.
const (
	MinVRAMBytes  = 16 << 20
	MaxVRAMBytes  = 16 << 40
	maxUserData   = 65536
	maxSSHKeySize = 8192
	// MaxInstanceKeys limits the SSH keys of an instance.
	MaxInstanceKeys = 32
	// MaxMedia is the number of CD drives of an instance.
	MaxMedia = 2
)

// BootFrom is what an instance's firmware tries first.
type BootFrom string

// Values of BootFrom; an empty value means BootDisk.
const (
	BootDisk   BootFrom = "disk"
	BootMedium BootFrom = "medium"
)

// HasDrives reports whether the instance's machine has CD drives: with a list of media,
// and for Windows, whose drivers are on a medium.
func (s InstanceSpec) HasDrives() bool { return len(s.Drives()) > 0 || s.OS == OSWindows }

// Drives returns the media in the CD drives, by drive. The medium of a rescue is in the
// first one.
func (s InstanceSpec) Drives() []ImageID {
	if s.Rescue == "" {
		return s.Media
	}
	return append([]ImageID{s.Rescue}, s.Media[min(len(s.Media), 1):]...)
}

// BootsMedium reports whether the firmware tries the first CD drive before the root
// volume.
func (s InstanceSpec) BootsMedium() bool { return s.Rescue != "" || s.BootFrom == BootMedium }

func media(s InstanceSpec) *Error {
	switch {
	case len(s.Media) > MaxMedia:
		return invalid("spec.media", "has %d media, want at most %d", len(s.Media), MaxMedia)
	case s.Ephemeral && s.Image == "" && len(s.Media) > 0:
		return invalid("spec.ephemeral", "an instance that is installed from a medium cannot be created anew on another node").WithHint("leave ephemeral out, or choose an image")
	case s.Ephemeral && s.Rescue != "":
		return invalid("spec.rescue", "an ephemeral instance has no data to rescue: its root volume is created anew").WithHint("reinstall it")
	}
	return nil
}

// CPUClass is how an instance's processor is chosen.
type CPUClass string

// Classes of processors.
const (
	CPUBaseline CPUClass = "baseline" // the features that all nodes have
	CPUHost     CPUClass = "host"     // the node's processor, unchanged
	CPUEmulated CPUClass = "emulated" // without KVM; users cannot choose it
)

// WhenFull is what happens when there is no room for a new instance, or for another size
// of one.
type WhenFull string

// Values of WhenFull; an empty value means WhenFullQueue for a new instance, and
// WhenFullRefuse for another size.
const (
	WhenFullQueue  WhenFull = "Queue"
	WhenFullRefuse WhenFull = "Refuse"
)

// Firmware is the firmware that an instance boots with.
type Firmware string

// Firmwares.
const (
	FirmwareBIOS Firmware = "bios"
	FirmwareUEFI Firmware = "uefi"
)

// Abilities besides a BIOS that a node reports for its instances
// (NodeMachines.Firmware).
const (
	AbilityUEFI       = "uefi"
	AbilitySecureBoot = "secureBoot"
	AbilityTPM        = "tpm"
)

func queueUntil(s InstanceSpec) *Error {
	if s.QueueUntil != nil && s.WhenFull == WhenFullRefuse {
		return invalid("spec.queueUntil", "an instance that is refused when no node has room does not wait").WithHint("leave it out, or set whenFull to %s", WhenFullQueue)
	}
	return nil
}

func firmware(s InstanceSpec) *Error {
	switch {
	case s.SecureBoot && s.Firmware != FirmwareUEFI:
		return invalid("spec.secureBoot", "Secure Boot needs UEFI").WithHint("set firmware to uefi")
	case s.TPM && s.Firmware != FirmwareUEFI:
		return invalid("spec.tpm", "a TPM needs UEFI").WithHint("set firmware to uefi")
	case s.TPM && s.Ephemeral:
		return invalid("spec.tpm", "an ephemeral instance is created anew on another node, without the content of its TPM").WithHint("one of tpm and ephemeral")
	}
	return nil
}

// Size returns what a spec requests of a node.
func (s InstanceSpec) Size() InstanceSize {
	s = DefaultInstance(s)
	return InstanceSize{Flavor: s.Flavor, Vgpu: s.Vgpu, HugePages: s.HugePages, CPUPolicy: s.CPUPolicy}
}

// WithSize returns a spec that requests another size.
func (s InstanceSpec) WithSize(z InstanceSize) InstanceSpec {
	s.Flavor, s.Vgpu, s.HugePages, s.CPUPolicy = z.Flavor, z.Vgpu, z.HugePages, z.CPUPolicy
	return s
}

// SameSize reports whether two specs request the same of a node.
func (s InstanceSpec) SameSize(o InstanceSpec) bool { return reflect.DeepEqual(s.Size(), o.Size()) }

// QueuedFor is what an instance waits in the queue for.
type QueuedFor string

// QueuedForResize is a wait for another size; the empty QueuedFor is a wait for a node.
const QueuedForResize QueuedFor = "Resize"

// Waits reports whether an instance waits in the queue: for a node, or while it is
// stopped for another size.
func (i Instance) Waits() bool {
	a := i.Assignment
	return a.QueuedAt != nil && a.PlacedAt == nil && i.Meta.DeletedAt == nil && (a.Node == "" || i.Status.Phase == InstanceStopped)
}

// Equal reports whether two assignments are the same.
func (a InstanceAssignment) Equal(b InstanceAssignment) bool {
	if !slices.Equal(a.Ports, b.Ports) {
		return false
	}
	a.Ports, b.Ports = nil, nil
	return reflect.DeepEqual(a, b)
}

// DefaultInstance fills in what was left out. As for every kind, pure functions of the
// spec are in this package; what depends on other objects is in api/server
// (instance.go).
func DefaultInstance(s InstanceSpec) InstanceSpec {
	if s.Power == "" {
		s.Power = PowerRunning
	}
	if s.Vgpu != nil && s.Vgpu.Pool == "" {
		v := *s.Vgpu
		v.Pool = DefaultPool
		s.Vgpu = &v
	}
	return s
}

// ValidateInstance checks a spec, with its defaults filled in.
func ValidateInstance(s InstanceSpec) error {
	var bad faults
	if s.Flavor == "" {
		bad.note(invalid("spec.flavor", "choose a flavor").WithHint("basalt flavor list"))
	}
	if s.Image == "" && len(s.Media) == 0 {
		bad.note(invalid("spec.image", "choose an image, an app or an installation medium").WithHint("basalt image list, or basalt app list"))
	}
	bad.note(
		oneOf("spec.power", s.Power, PowerRunning, PowerStopped),
		volumeBytes("spec.rootBytes", s.RootBytes),
		oneOf("spec.firmware", s.Firmware, "", FirmwareBIOS, FirmwareUEFI), firmware(s),
		oneOf("spec.os", s.OS, "", OSLinux, OSWindows), guestOS(s),
		media(s), oneOf("spec.bootFrom", s.BootFrom, "", BootDisk, BootMedium),
		oneOf("spec.cpu", s.CPU, "", CPUBaseline, CPUHost),
		oneOf("spec.hugePages", s.HugePages, "", HugePages2Mi, HugePages1Gi),
		oneOf("spec.whenFull", s.WhenFull, "", WhenFullQueue, WhenFullRefuse), queueUntil(s),
		oneOf("spec.cpuPolicy", s.CPUPolicy, "", CPUShared, CPUDedicated),
		between("spec.restarts", s.Restarts, 0, 1<<53, ""),
		between("spec.priority", s.Priority, 0, 100, ""),
		storagePool("spec.storagePool", s.StoragePool),
		instanceNetworks(s.Networks),
		sshKeys(s.SSHKeys))
	if len(s.UserData) > maxUserData {
		bad.note(invalid("spec.userData", "has %d bytes, want at most %d", len(s.UserData), maxUserData))
		return bad.err()
	}
	if s.Vgpu != nil {
		bad.note(
			poolName("spec.vgpu.pool", s.Vgpu.Pool),
			text("spec.vgpu.model", s.Vgpu.Model),
			mebibytes("spec.vgpu.vramBytes", s.Vgpu.VramBytes, MinVRAMBytes, MaxVRAMBytes),
			between("spec.vgpu.sharePercent", s.Vgpu.SharePercent, 0, 100, " %"),
			oneOf("spec.vgpu.tier", s.Vgpu.Tier, "", TierPremium, TierStandard, TierBasic))
	}
	return bad.err()
}

func sshKeys(keys []string) *Error {
	if len(keys) > MaxInstanceKeys {
		return invalid("spec.sshKeys", "has %d keys, want at most %d", len(keys), MaxInstanceKeys)
	}
	for _, k := range keys {
		// The format is "ssh-ed25519 AAAA… comment". The keys are written to a YAML
		// document and to authorized_keys, so each must be a single line.
		if fields := strings.Fields(k); len(fields) < 2 || len(k) > maxSSHKeySize || hasControl(k) {
			return invalid("spec.sshKeys", "%q is not an SSH public key", clip(k)).WithHint("e.g. the line in ~/.ssh/id_ed25519.pub")
		}
	}
	return nil
}

// ChangeInstance checks which fields of an existing instance change. A new flavor or
// vGPU takes effect when the instance is stopped.
func ChangeInstance(old, s InstanceSpec) error {
	switch {
	case old.App != s.App:
		return invalid("spec.app", "cannot change after the instance is created").WithHint("create another instance")
	case old.Image != s.Image:
		return invalid("spec.image", "the image of an instance cannot change").WithHint("create another instance")
	case old.RootBytes != s.RootBytes:
		return invalid("spec.rootBytes", "cannot change after the instance is created").WithHint("change the size of its root volume instead")
	case old.UserData != s.UserData:
		return invalid("spec.userData", "cannot change: it is only read at the first boot").WithHint("create another instance")
	case !slices.Equal(old.SSHKeys, s.SSHKeys):
		return invalid("spec.sshKeys", "cannot change: they are only read at the first boot").WithHint("change authorized_keys in the instance")
	case old.Ephemeral != s.Ephemeral:
		// Its node must have stored the setting before the instance may run elsewhere.
		return invalid("spec.ephemeral", "cannot change after the instance is created").WithHint("create another instance")
	case old.Firmware != s.Firmware:
		return invalid("spec.firmware", "cannot change after the instance is created").WithHint("create another instance")
	case old.SecureBoot != s.SecureBoot:
		return invalid("spec.secureBoot", "cannot change after the instance is created").WithHint("create another instance")
	case old.OS != s.OS:
		return invalid("spec.os", "cannot change after the instance is created").WithHint("create another instance")
	case old.TPM != s.TPM:
		return invalid("spec.tpm", "cannot change after the instance is created").WithHint("create another instance")
	case old.StoragePool != s.StoragePool:
		return invalid("spec.storagePool", "the storage pool of a root volume cannot change").WithHint("create another instance")
	case old.RootVolume != s.RootVolume:
		return invalid("spec.rootVolume", "only a reinstall replaces the root volume").WithHint("basalt instance reinstall")
	case s.Restarts < old.Restarts:
		return invalid("spec.restarts", "must not decrease")
	}
	return nil
}
