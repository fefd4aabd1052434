package api

import (
	"fmt"
	"slices"
	"strings"
)

// Equal reports whether a guest cannot tell two processors apart.
func (m CPUModel) Equal(o CPUModel) bool {
	return m.Vendor == o.Vendor && m.Model == o.Model && m.AddressBits == o.AddressBits &&
		slices.Equal(m.Features, o.Features) && slices.Equal(m.Disabled, o.Disabled)
}

// Incompatible returns why a guest that needs processor want cannot run on this one, or "" if
// it can.
func (m CPUModel) Incompatible(want CPUModel) string {
	if m.Vendor != want.Vendor {
		return fmt.Sprintf("its processor is of %s, not of %s", orUnknown(m.Vendor), orUnknown(want.Vendor))
	}
	if m.AddressBits != 0 && m.AddressBits < want.AddressBits {
		return fmt.Sprintf("its processor has %d address bits, not %d", m.AddressBits, want.AddressBits)
	}
	var lacks []string
	for _, f := range want.Features {
		if !slices.Contains(m.Features, f) {
			lacks = append(lacks, f)
		}
	}
	const most = 4
	switch {
	case len(lacks) > most:
		return fmt.Sprintf("its processor lacks %s and %d more", strings.Join(lacks[:most], ", "), len(lacks)-most)
	case len(lacks) > 0:
		return "its processor lacks " + strings.Join(lacks, ", ")
	}
	return ""
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown vendor"
	}
	return s
}

// IncompatibleCPU returns why an instance that runs with processor c cannot be live-migrated
// to the node, or "" if it can. A node of a release that did not report processors is
// accepted: it checks when the instance arrives.
func (n Node) IncompatibleCPU(c InstanceCPU) string {
	has := n.Status.Machines
	switch {
	case c.Class == "" || len(has.Types) == 0 || c.Class == CPUHost && c.CPU.Model == "":
		return ""
	case c.Class == CPUEmulated:
		if n.Status.Accelerator == "kvm" {
			return "guests are not emulated there, and the instance is"
		}
		return ""
	case has.CPU.Model == "":
		return "guests are emulated there, and the instance is not"
	case c.Class == CPUHost && !has.CPU.Equal(c.CPU):
		return "its processor is not the same as that of the node that the instance runs on, which spec.cpu host asks for"
	}
	return has.CPU.Incompatible(c.CPU)
}
