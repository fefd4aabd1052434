package hypervisor

import lx "libvirt.org/go/libvirtxml"

// hypervRetries is how often a guest spins on a lock before it yields its
// processor, the value in the documentation of libvirt and QEMU.
const hypervRetries = 8191

// hyperv returns the Hyper-V enlightenments for Windows
// (docs/system/i386/hyperv.rst of QEMU): with them the guest spins less, and
// reads its clock without a VM exit. Only KVM implements them. None of them
// depends on the node's processor, so that a guest can migrate.
func (d Domain) hyperv() *lx.DomainFeatureHyperV {
	if !d.Windows || d.Accelerator != KVM {
		return nil
	}
	on := func() *lx.DomainFeatureState { return &lx.DomainFeatureState{State: "on"} }
	return &lx.DomainFeatureHyperV{
		Relaxed:     on(),
		VAPIC:       on(),
		Spinlocks:   &lx.DomainFeatureHyperVSpinlocks{DomainFeatureState: *on(), Retries: hypervRetries},
		VPIndex:     on(), // SynIC and STimer require it
		Runtime:     on(),
		Synic:       on(),
		STimer:      &lx.DomainFeatureHyperVSTimer{DomainFeatureState: *on()},
		Frequencies: on(),
		TLBFlush:    &lx.DomainFeatureHyperVTLBFlush{DomainFeatureState: *on()},
		IPI:         on(),
	}
}

// clock returns the domain's clock. Windows expects local time in the
// real-time clock; its lost ticks are delivered late, and without HPET Windows
// uses cheaper timers.
func (d Domain) clock() *lx.DomainClock {
	if !d.Windows {
		return &lx.DomainClock{Offset: "utc"}
	}
	c := &lx.DomainClock{Offset: "localtime", Timer: []lx.DomainTimer{
		{Name: "rtc", TickPolicy: "catchup"}, {Name: "pit", TickPolicy: "delay"}, {Name: "hpet", Present: "no"},
	}}
	if d.Accelerator == KVM {
		c.Timer = append(c.Timer, lx.DomainTimer{Name: "hypervclock", Present: "yes"})
	}
	return c
}
