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

// newestMachine is the alias of the newest machine type of the board that a domain has.
// QEMU's next version means another machine by it, so it is used only for a domain
// whose type is not known.
const newestMachine = "q35"

// machineForm is a machine type with the version of QEMU that it is like.
var machineForm = regexp.MustCompile(`^pc-q35-[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$`)

// Abilities of a node's hypervisor: which machines it can make.
type Abilities struct {
	// Machines are the machine types that a domain can have here, the newest first.
	Machines []string
	// CPU that guests can be given by KVM. Without a model: none.
	CPU      CPU
	Firmware FirmwareAbilities
}

// ParseMachines returns the machine types of libvirt's capabilities that a domain can
// have, the newest first.
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

// CompareMachines compares the versions of two machine types: negative, if a is of an
// older QEMU than b. What is no type with a version is older than what is one.
func CompareMachines(a, b string) int {
	return slices.Compare(machineVersion(a), machineVersion(b))
}

func machineVersion(name string) (v []int) {
	if !machineForm.MatchString(name) {
		return nil
	}
	for _, part := range strings.Split(strings.TrimPrefix(name, "pc-q35-"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil { // the form has digits only
			return nil
		}
		v = append(v, n)
	}
	return v
}

// machine is the type that libvirt is asked for.
func (d Domain) machine() string { return cmp.Or(d.Machine, newestMachine) }

// topology is always written: without it, QEMU makes a socket of each processor, and
// some guests are licensed for a few sockets only.
func (d Domain) topology() *lx.DomainCPUTopology {
	return &lx.DomainCPUTopology{Sockets: 1, Cores: d.VCPUs, Threads: 1}
}
