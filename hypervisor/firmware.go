package hypervisor

import (
	"fmt"
	"path/filepath"
	"slices"

	lx "libvirt.org/go/libvirtxml"

	"github.com/basalt-gpu/basalt/api"
)

// Firmware is UEFI in place of SeaBIOS: OVMF.
type Firmware struct {
	// SecureBoot runs only what is signed with the enrolled keys, which are
	// Microsoft's.
	SecureBoot bool
	// NVRAM is the file of the guest's UEFI variables. libvirt creates it at the
	// first start; it belongs to the caller.
	NVRAM string
}

// Files of Debian's package ovmf. The variables of those with .ms have Microsoft's keys.
const (
	uefiCode, uefiVars     = "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"
	secureCode, secureVars = "/usr/share/OVMF/OVMF_CODE_4M.ms.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"
)

// FirmwareAbilities are the kinds of firmware that domains can have on this
// node.
type FirmwareAbilities struct{ UEFI, SecureBoot, TPM bool }

// ParseFirmware reads the abilities from libvirt's domain capabilities.
func ParseFirmware(capabilities string) (a FirmwareAbilities, err error) {
	var caps lx.DomainCaps
	if err := caps.Unmarshal(capabilities); err != nil {
		return a, fmt.Errorf("decode domain capabilities of libvirt: %w", err)
	}
	if caps.OS != nil && caps.OS.Loader != nil {
		a.UEFI = slices.Contains(caps.OS.Loader.Values, uefiCode)
		a.SecureBoot = slices.Contains(caps.OS.Loader.Values, secureCode)
	}
	if caps.Devices != nil && caps.Devices.TPM != nil && caps.Devices.TPM.Supported == "yes" {
		for _, e := range caps.Devices.TPM.Enums {
			a.TPM = a.TPM || e.Name == "backendModel" && slices.Contains(e.Values, "emulator")
		}
	}
	return a, nil
}

// firmware adds the domain's firmware to its XML.
func (d Domain) firmware(o *lx.DomainOS) {
	if d.Firmware == nil {
		return
	}
	code, vars := uefiCode, uefiVars
	o.Loader = &lx.DomainLoader{Readonly: "yes", Type: "pflash"}
	if d.Firmware.SecureBoot {
		code, vars, o.Loader.Secure = secureCode, secureVars, "yes"
	}
	o.Loader.Path = code
	o.NVRam = &lx.DomainNVRam{NVRam: d.Firmware.NVRAM, Template: vars}
}

// tpm returns a TPM 2.0 by swtpm, whose state libvirt stores by the domain's
// UUID, migrates with a running domain, and deletes with the domain's
// definition.
func (d Domain) tpm() []lx.DomainTPM {
	if !d.TPM {
		return nil
	}
	return []lx.DomainTPM{{Model: "tpm-crb", Backend: &lx.DomainTPMBackend{Emulator: &lx.DomainTPMBackendEmulator{Version: "2.0"}}}}
}

// TPMStates is the folder in which libvirt stores the states of TPMs.
const TPMStates = "/var/lib/libvirt/swtpm"

// TPMState returns the path of the permanent state of the domain's TPM below the
// folder with the states: swtpm replaces this file atomically, and reads it when the
// machine starts. The file exists from the domain's first start until Undefine.
// libvirt gives the files beside it to swtpm's user at each start, and creates a new
// TPM if there are none.
func TPMState(states string, id api.InstanceID) string {
	return filepath.Join(states, UUID(id), "tpm2", "tpm2-00.permall")
}

func (d Domain) validateFirmware() error {
	if d.Firmware == nil {
		if d.TPM {
			return invalid("tpm", "a TPM needs UEFI firmware")
		}
		return nil
	}
	return checkPath("firmware.nvram", d.Firmware.NVRAM, true, maxPath)
}
