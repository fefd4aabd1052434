package libvirt

import (
	"context"
	"slices"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Pin implements hypervisor.Driver. It changes only threads that are elsewhere: a change
// needs libvirt's job of the domain, which a migration holds.
func (d *Driver) Pin(ctx context.Context, id api.InstanceID, p hypervisor.Pinning) error {
	if err := p.Check(); err != nil {
		return err
	}
	return none(d.onDomain(ctx, id, func(dom *lv.Domain) error {
		st, err := active(dom)
		if err != nil || !st.Active() || st == hypervisor.Incoming {
			return err
		}
		if err := pinVCPUs(dom, id, p); err != nil {
			return stopped(dom, err)
		}
		return stopped(dom, pinOthers(dom, p.Shared))
	}))
}

func pinVCPUs(dom *lv.Domain, id api.InstanceID, p hypervisor.Pinning) error {
	has, err := dom.GetVcpuPinInfo(lv.DOMAIN_AFFECT_LIVE)
	if err != nil {
		return err
	}
	if len(p.VCPUs) > 0 && len(p.VCPUs) != len(has) {
		return api.Errorf(api.CodeInvalid, "%d CPUs for the %d vCPUs of instance %s", len(p.VCPUs), len(has), id).At("vcpus")
	}
	for i, now := range has {
		want := p.Shared
		if len(p.VCPUs) > 0 {
			want = p.VCPUs[i : i+1]
		}
		if samePlace(now, want) {
			continue
		}
		if err := dom.PinVcpuFlags(uint(i), cpuMap(want), lv.DOMAIN_AFFECT_LIVE); err != nil {
			return err
		}
	}
	return nil
}

// pinOthers moves the emulator and the I/O threads.
func pinOthers(dom *lv.Domain, shared []int) error {
	now, err := dom.GetEmulatorPinInfo(lv.DOMAIN_AFFECT_LIVE)
	if err != nil {
		return err
	}
	if !samePlace(now, shared) {
		if err := dom.PinEmulator(cpuMap(shared), lv.DOMAIN_AFFECT_LIVE); err != nil {
			return err
		}
	}
	threads, err := dom.GetIOThreadInfo(lv.DOMAIN_AFFECT_LIVE)
	if err != nil {
		return err
	}
	for _, t := range threads {
		if samePlace(t.CpuMap, shared) {
			continue
		}
		if err := dom.PinIOThread(t.IOThreadID, cpuMap(shared), lv.DOMAIN_AFFECT_LIVE); err != nil {
			return err
		}
	}
	return nil
}

// cpuMap returns libvirt's form of a set of CPUs.
func cpuMap(cpus []int) []bool {
	m := make([]bool, slices.Max(cpus)+1)
	for _, cpu := range cpus {
		m[cpu] = true
	}
	return m
}

func samePlace(now []bool, want []int) bool {
	var cpus []int
	for cpu, in := range now {
		if in {
			cpus = append(cpus, cpu)
		}
	}
	return slices.Equal(cpus, slices.Sorted(slices.Values(want)))
}
