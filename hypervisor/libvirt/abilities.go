package libvirt

import (
	"context"
	"errors"
	"fmt"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Abilities implements hypervisor.Driver. libvirt's answers are long, and
// change only with the versions of libvirt and QEMU: they are cached per
// version.
func (d *Driver) Abilities(ctx context.Context) (hypervisor.Abilities, error) {
	if !RunsQEMU(d.opt.URI) {
		return hypervisor.Abilities{}, ctx.Err()
	}
	return call(ctx, d, "", func(s *session) (hypervisor.Abilities, error) {
		lib, err := s.GetLibVersion()
		if err != nil {
			return hypervisor.Abilities{}, err
		}
		qemu, err := s.GetVersion()
		if err != nil {
			return hypervisor.Abilities{}, err
		}
		of := fmt.Sprintf("libvirt %d, QEMU %d", lib, qemu)
		d.mu.Lock()
		known, ok := d.known[of]
		d.mu.Unlock()
		if ok {
			return known, nil
		}
		found, err := abilities(s)
		if err != nil {
			return hypervisor.Abilities{}, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		clear(d.known)
		d.known[of] = found
		return found, nil
	})
}

func abilities(s *session) (a hypervisor.Abilities, err error) {
	text, err := s.GetCapabilities()
	if err != nil {
		return a, err
	}
	if a.Machines, err = hypervisor.ParseMachines(text); err != nil {
		return a, err
	}
	// Firmware is the same with and without KVM.
	if text, err = s.GetDomainCapabilities("", arch, board, "qemu", 0); err != nil {
		return a, err
	}
	if a.Firmware, err = hypervisor.ParseFirmware(text); err != nil {
		return a, err
	}
	// Without KVM libvirt returns an error.
	if text, err = s.GetDomainCapabilities("", arch, board, kvm, 0); err != nil {
		return a, nil
	}
	model, bits, err := hypervisor.HostModel(text)
	if err != nil || model == "" {
		return a, err
	}
	if a.CPU, err = baseline(s, []string{model}); err != nil {
		return a, err
	}
	a.CPU.AddressBits = bits
	return a, nil
}

// Parameters of the queries to libvirt.
const (
	arch  = "x86_64"
	board = "q35"
	kvm   = "kvm"
)

// baseline returns the baseline with all features by name, and without those
// that prevent migration.
func baseline(s *session, of []string) (hypervisor.CPU, error) {
	text, err := s.BaselineHypervisorCPU("", arch, board, kvm, of, lv.CONNECT_BASELINE_CPU_EXPAND_FEATURES|lv.CONNECT_BASELINE_CPU_MIGRATABLE)
	if err != nil {
		return hypervisor.CPU{}, err
	}
	return hypervisor.ParseCPU(text)
}

// BaselineCPU implements hypervisor.Driver.
func (d *Driver) BaselineCPU(ctx context.Context, of []hypervisor.CPU) (hypervisor.CPU, error) {
	texts, bits, err := describe(of)
	if err != nil {
		return hypervisor.CPU{}, err
	}
	c, err := call(ctx, d, "", func(s *session) (hypervisor.CPU, error) { return baseline(s, texts) })
	if is(err, lv.ERR_OPERATION_FAILED) || is(err, lv.ERR_CPU_INCOMPATIBLE) || is(err, lv.ERR_CONFIG_UNSUPPORTED) {
		return c, errors.Join(api.Errorf(api.CodeInvalid, "the %d processors have no common baseline", len(of)), err)
	}
	c.AddressBits = bits
	return c, err
}

// describe returns the processors in libvirt's form. Its baseline has no
// address bits: bits is the smallest number, and 0 if one is unknown.
func describe(of []hypervisor.CPU) (texts []string, bits int, err error) {
	for i, c := range of {
		if i == 0 || c.AddressBits < bits {
			bits = c.AddressBits
		}
		c.AddressBits = 0
		text, err := c.XML()
		if err != nil {
			return nil, 0, err
		}
		texts = append(texts, text)
	}
	return texts, bits, nil
}

// CheckCPU implements hypervisor.Driver.
func (d *Driver) CheckCPU(ctx context.Context, c hypervisor.CPU) error {
	text, err := c.XML()
	if err != nil {
		return err
	}
	is, err := call(ctx, d, "", func(s *session) (lv.CPUCompareResult, error) {
		return s.CompareHypervisorCPU("", arch, board, kvm, text, 0)
	})
	if err == nil && is == lv.CPU_COMPARE_INCOMPATIBLE {
		err = api.Errorf(api.CodeState, "guests cannot use this processor (%s) on this node", c.Model)
	}
	return err
}
