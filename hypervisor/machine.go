package hypervisor

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	lx "libvirt.org/go/libvirtxml"
)

// newestMachine is the alias of the newest machine type with a domain's board.
// In QEMU's next version it is another machine, so it is used only for a
// domain without a known type.
const newestMachine = "q35"

// machineForm matches a machine type with a version of QEMU.
var machineForm = regexp.MustCompile(`^pc-q35-[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$`)

// Abilities are what a node's hypervisor supports.
type Abilities struct {
	// Machines are the machine types that domains can have on this node, the
	// newest first.
	Machines []string
	// CPU is the processor that guests can have under KVM. Its model is empty if
	// there is none.
	CPU      CPU
	Firmware FirmwareAbilities
}

// ParseMachines returns the machine types of libvirt's capabilities that a
// domain can have, the newest first.
func ParseMachines(capabilities string) ([]string, error) {
	var caps lx.Caps
	if err := caps.Unmarshal(capabilities); err != nil {
		return nil, fmt.Errorf("decode capabilities of libvirt: %w", err)
	}
	found := map[string]bool{}
	for _, g := range caps.Guests {
		if g.Arch.Name != "x86_64" {
			continue
		}
		for _, m := range g.Arch.Machines {
			if machineForm.MatchString(m.Name) {
				found[m.Name] = true
			}
		}
	}
	var all []string
	for name := range found {
		all = append(all, name)
	}
	slices.SortFunc(all, func(a, b string) int { return CompareMachines(b, a) })
	return all, nil
}

// CompareMachines compares the versions of two machine types: the result is
// negative if a is from an older QEMU than b. A name without a version is
// older than one with a version.
func CompareMachines(a, b string) int {
	return slices.Compare(machineVersion(a), machineVersion(b))
}

func machineVersion(name string) (v []int) {
	if !machineForm.MatchString(name) {
		return nil
	}
	for _, part := range strings.Split(strings.TrimPrefix(name, "pc-q35-"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil { // too large
			return nil
		}
		v = append(v, n)
	}
	return v
}

// machine returns the machine type for the domain's XML.
func (d Domain) machine() string { return cmp.Or(d.Machine, newestMachine) }

// topology returns one socket with all processors. It is always written:
// QEMU's default is one socket per processor, and some guests are licensed for
// a few sockets only.
func (d Domain) topology() *lx.DomainCPUTopology {
	return &lx.DomainCPUTopology{Sockets: 1, Cores: d.VCPUs, Threads: 1}
}
