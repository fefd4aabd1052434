package fake

import (
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Clock sets the clock of the guests; the default is time.Now.
func (d *Driver) Clock(now func() time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = now
}

// Fault makes f decide, before each method, whether it fails: op is the
// method's name, id is empty for List and Info. A nil f ends that.
func (d *Driver) Fault(f func(op string, id api.InstanceID) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Calls returns every call so far, in the form "Start ins-1".
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// Domain returns the present definition and, for a running domain, the one it
// was booted with.
func (d *Driver) Domain(id api.InstanceID) (defined, running hypervisor.Domain, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom, ok := d.domains[id]
	if !ok {
		return hypervisor.Domain{}, hypervisor.Domain{}, false
	}
	if !dom.status.State.Active() {
		return dom.spec, hypervisor.Domain{}, true
	}
	return dom.spec, dom.running, true
}

// Pins returns where the threads of a running domain run now.
func (d *Driver) Pins(id api.InstanceID) hypervisor.Pinning {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dom, ok := d.domains[id]; ok && dom.status.State.Active() {
		return dom.pins
	}
	return hypervisor.Pinning{}
}

// DefaultAbilities returns the abilities of a new fake.
func DefaultAbilities() hypervisor.Abilities {
	return hypervisor.Abilities{
		Machines: []string{"pc-q35-10.0", "pc-q35-9.2"},
		CPU:      hypervisor.CPU{Vendor: "AMD", Model: "EPYC-Milan", Features: []string{"aes", "avx", "avx2", "sse2"}, AddressBits: 48},
		Firmware: hypervisor.FirmwareAbilities{UEFI: true, SecureBoot: true, TPM: true},
	}
}

// SetAbilities replaces the abilities, to simulate another QEMU or processor.
func (d *Driver) SetAbilities(a hypervisor.Abilities) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abilities = a
}

// Boot ends the boot of a running guest: its agent starts to respond.
func (d *Driver) Boot(id api.InstanceID) { d.change(id, hypervisor.Running, d.boot) }

// Crash simulates a crash of QEMU, or a panic of the guest.
func (d *Driver) Crash(id api.InstanceID, reason string) {
	d.change(id, hypervisor.Running, func(dom *domain) {
		d.set(dom, hypervisor.Crashed, reason, hypervisor.EventCrashed)
	})
}

// PowerOff simulates a shutdown from inside the guest.
func (d *Driver) PowerOff(id api.InstanceID) {
	d.change(id, hypervisor.Running, func(dom *domain) {
		d.set(dom, hypervisor.Stopped, "the guest shut down", hypervisor.EventStopped)
	})
}

// DiskFull pauses the guest, as QEMU does when the host's disk is full.
func (d *Driver) DiskFull(id api.InstanceID) {
	d.change(id, hypervisor.Running, func(dom *domain) {
		d.set(dom, hypervisor.Paused, "the disk on the host is full", hypervisor.EventPaused)
	})
}

// Hold makes the running guest keep every device that is detached, or release
// devices again. Devices whose detachment was requested meanwhile are released
// at the next request.
func (d *Driver) Hold(id api.InstanceID, holds bool) {
	d.change(id, hypervisor.Running, func(dom *domain) { dom.holds = holds })
}

// Frozen reports whether the guest's file systems are frozen.
func (d *Driver) Frozen(id api.InstanceID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom, ok := d.domains[id]
	return ok && dom.frozen
}

// Grown returns the size that a disk was grown to while the domain ran; 0:
// none.
func (d *Driver) Grown(id api.InstanceID, serial string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom, ok := d.domains[id]
	if !ok {
		return 0
	}
	return dom.sizes[serial]
}

// Secrets returns the UUIDs of the secrets that are set, sorted.
func (d *Driver) Secrets() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.secrets))
}

// RemoveSilently removes a domain without an event, as if it had been removed by another
// program while nobody was subscribed.
func (d *Driver) RemoveSilently(id api.InstanceID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.domains, id)
}

// Reconnect simulates a restart of libvirtd: every subscriber receives a
// Resync.
func (d *Driver) Reconnect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events.Send(hypervisor.Event{Type: hypervisor.EventResync})
}

func (d *Driver) change(id api.InstanceID, from hypervisor.State, f func(*domain)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dom, ok := d.domains[id]; ok && dom.status.State == from {
		f(dom)
	}
}
