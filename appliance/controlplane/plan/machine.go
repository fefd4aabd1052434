package plan

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// canRun returns why the node cannot provide the instance's machine, or nothing. A node
// that does not report its machine types is not excluded by them: it finds out when it
// starts the instance.
func canRun(in api.Instance, n api.Node) string {
	types, t := n.Status.Machines.Types, in.Status.Machine.Type
	if t != "" && len(types) > 0 && !slices.Contains(types, t) {
		return "its QEMU has no machine type " + t
	}
	for _, need := range []struct {
		ability string
		needed  bool
		reason  string
	}{
		{api.AbilityUEFI, in.Spec.Firmware == api.FirmwareUEFI, "has no UEFI firmware for guests (ovmf)"},
		{api.AbilitySecureBoot, in.Spec.SecureBoot, "has no UEFI firmware with Secure Boot for guests (ovmf)"},
		{api.AbilityTPM, in.Spec.TPM, "has no TPM for guests (swtpm)"},
	} {
		// A node that does not report firmware would start it with a BIOS.
		if need.needed && !slices.Contains(n.Status.Machines.Firmware, need.ability) {
			return need.reason
		}
	}
	return ""
}
