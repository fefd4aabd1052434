package api

// GuestOS is the operating system that an instance's virtual machine is configured for,
// or that an image has.
type GuestOS string

// Operating systems.
const (
	OSLinux   GuestOS = "linux"
	OSWindows GuestOS = "windows"
	OSOther   GuestOS = "other" // of images only
)

// maxOSName is the limit of ImageAbilities.OSName.
const maxOSName = 64

// ForImage returns the spec of a new instance with what the operating system of its image
// decides and the spec leaves open. Windows 11 and Windows Server 2025 require UEFI,
// Secure Boot and a TPM; earlier versions can use them.
func (s InstanceSpec) ForImage(can ImageAbilities) InstanceSpec {
	if can.OS != OSWindows || s.OS != "" && s.OS != OSWindows {
		return s
	}
	s.OS = OSWindows
	if s.Firmware == "" && !s.SecureBoot && !s.TPM {
		s.Firmware, s.SecureBoot, s.TPM = FirmwareUEFI, true, !s.Ephemeral
	}
	return s
}

// KeepMachine returns a changed spec with the operating system and the firmware that the
// instance was created with, if they are left out: they may be those of its image.
func (s InstanceSpec) KeepMachine(old InstanceSpec) InstanceSpec {
	if s.OS == "" {
		s.OS = old.OS
	}
	if s.Firmware == "" && !s.SecureBoot && !s.TPM {
		s.Firmware, s.SecureBoot, s.TPM = old.Firmware, old.SecureBoot, old.TPM
	}
	return s
}

// guestOS checks that an instance has nothing that its operating system does not
// support.
func guestOS(s InstanceSpec) *Error {
	if s.OS == OSWindows && s.Vgpu != nil {
		return invalid("spec.os", "Windows has no driver for virtual GPUs").WithHint("create the instance without a virtual GPU")
	}
	return nil
}
