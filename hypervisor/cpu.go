package hypervisor

import (
	"fmt"
	"regexp"
	"slices"

	lx "libvirt.org/go/libvirtxml"

	"github.com/basalt-gpu/basalt/api"
)

// CPU is a processor model that a guest can have, as libvirt describes it.
type CPU struct {
	Vendor, Model string
	Features      []string // all features of the processor, sorted
	Disabled      []string // features of the model that the processor lacks; sorted
	AddressBits   int      // of physical addresses; 0: unknown
}

const maxCPUFeatures = 1024

var cpuForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$`)

// CPUOf converts a processor of the API.
func CPUOf(m api.CPUModel) CPU {
	return CPU{Vendor: m.Vendor, Model: m.Model, Features: m.Features, Disabled: m.Disabled, AddressBits: int(m.AddressBits)}
}

// API converts the processor for the API.
func (c CPU) API() api.CPUModel {
	return api.CPUModel{Vendor: c.Vendor, Model: c.Model, Features: c.Features, Disabled: c.Disabled, AddressBits: int64(c.AddressBits)}
}

// Validate returns what is wrong with the processor: an *api.Error, or nil.
func (c CPU) Validate() error {
	if !cpuForm.MatchString(c.Model) {
		return invalid("cpu.model", "%q is not a valid processor name", c.Model)
	}
	if c.Vendor != "" && !cpuForm.MatchString(c.Vendor) {
		return invalid("cpu.vendor", "%q is not a valid vendor name", c.Vendor)
	}
	if len(c.Features)+len(c.Disabled) > maxCPUFeatures {
		return invalid("cpu.features", "%d features, want at most %d", len(c.Features)+len(c.Disabled), maxCPUFeatures)
	}
	for _, f := range slices.Concat(c.Features, c.Disabled) {
		if !cpuForm.MatchString(f) {
			return invalid("cpu.features", "%q is not a valid feature name", f)
		}
	}
	if c.AddressBits != 0 && (c.AddressBits < 32 || c.AddressBits > 64) {
		return invalid("cpu.addressBits", "%d is out of range, want 32 to 64", c.AddressBits)
	}
	return nil
}

// XML returns the processor in the form that libvirt compares and computes
// baselines of.
func (c CPU) XML() (string, error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	return c.xml().Marshal()
}

// xml names every feature, so that the model's definition in another libvirt
// does not matter.
func (c CPU) xml() *lx.DomainCPU {
	x := &lx.DomainCPU{Mode: "custom", Match: "exact", Check: "partial", Model: &lx.DomainCPUModel{Fallback: "forbid", Value: c.Model}, Vendor: c.Vendor}
	for _, f := range c.Features {
		x.Features = append(x.Features, lx.DomainCPUFeature{Policy: "require", Name: f})
	}
	for _, f := range c.Disabled {
		x.Features = append(x.Features, lx.DomainCPUFeature{Policy: "disable", Name: f})
	}
	if c.AddressBits != 0 {
		// Without it a guest has 40 physical address bits (1 TiB), regardless of the
		// processor.
		x.MaxPhysAddr = &lx.DomainCPUMaxPhysAddr{Mode: "passthrough", Limit: uint(c.AddressBits)}
	}
	return x
}

// ParseCPU decodes a processor from libvirt's XML with expanded features.
func ParseCPU(text string) (c CPU, err error) {
	var x lx.DomainCPU
	if err := x.Unmarshal(text); err != nil {
		return c, fmt.Errorf("decode processor description of libvirt: %w", err)
	}
	c.Vendor = x.Vendor
	if x.Model != nil {
		c.Model = x.Model.Value
	}
	for _, f := range x.Features {
		if f.Policy == "disable" {
			c.Disabled = append(c.Disabled, f.Name)
		} else {
			c.Features = append(c.Features, f.Name)
		}
	}
	slices.Sort(c.Features)
	slices.Sort(c.Disabled)
	if x.MaxPhysAddr != nil {
		c.AddressBits = int(x.MaxPhysAddr.Limit)
	}
	return c, nil
}

// HostModel returns libvirt's description of this machine's processor from its
// domain capabilities, and its physical address bits; text is empty if there
// is none.
func HostModel(capabilities string) (text string, addressBits int, err error) {
	var caps lx.DomainCaps
	if err := caps.Unmarshal(capabilities); err != nil {
		return "", 0, fmt.Errorf("decode domain capabilities of libvirt: %w", err)
	}
	if caps.CPU == nil {
		return "", 0, nil
	}
	for _, m := range caps.CPU.Modes {
		if m.Name != "host-model" || m.Supported != "yes" || len(m.Models) != 1 {
			continue
		}
		x := &lx.DomainCPU{Mode: "custom", Match: "exact", Model: &lx.DomainCPUModel{Fallback: "forbid", Value: m.Models[0].Name}, Vendor: m.Vendor}
		for _, f := range m.Features {
			x.Features = append(x.Features, lx.DomainCPUFeature(f))
		}
		if m.MaxPhysAddr != nil {
			addressBits = int(m.MaxPhysAddr.Limit)
		}
		text, err := x.Marshal()
		return text, addressBits, err
	}
	return "", 0, nil
}
