package hypervisor

import lx "libvirt.org/go/libvirtxml"

// hypervRetries is how often a guest spins on a lock before it gives its processor away,
// the value that libvirt's and QEMU's documentation use.
const hypervRetries = 8191

// hyperv is what Windows knows of the hypervisor below it (docs/system/i386/hyperv.rst of
// QEMU): with it the guest spins less, and reads its clock without leaving the guest.
// Only KVM implements it. Nothing here depends on the node's processor, so that a guest
// can move.
func (d Domain) hyperv() *lx.DomainFeatureHyperV {
	if !d.Windows || d.Accelerator != KVM {
		return nil
	}
	on := func() *lx.DomainFeatureState { return &lx.DomainFeatureState{State: "on"} }
	return &lx.DomainFeatureHyperV{
		Relaxed:     on(),
		VAPIC:       on(),
		Spinlocks:   &lx.DomainFeatureHyperVSpinlocks{DomainFeatureState: *on(), Retries: hypervRetries},
		VPIndex:     on(), // SynIC and STimer need it
		Runtime:     on(),
		Synic:       on(),
		STimer:      &lx.DomainFeatureHyperVSTimer{DomainFeatureState: *on()},
		Frequencies: on(),
		TLBFlush:    &lx.DomainFeatureHyperVTLBFlush{DomainFeatureState: *on()},
		IPI:         on(),
	}
}

// clock of the domain. Windows takes the real-time clock for local time; lost ticks of it
// are caught up on, and without HPET it uses the timers that cost least.
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
