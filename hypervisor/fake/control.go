package fake

import (
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Clock makes now the time by which guests work; without it that is time.Now.
func (d *Driver) Clock(now func() time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = now
}

// Fault makes f decide, before each verb, whether it fails: op is the verb's
// name, id empty for List and Info. f nil: nothing fails any more.
func (d *Driver) Fault(f func(op string, id api.InstanceID) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Calls is every verb so far, as "Start ins-1".
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// Domain is what is defined now, and what was booted when it runs.
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

// DefaultAbilities are those of a fake that nobody has given others.
func DefaultAbilities() hypervisor.Abilities {
	return hypervisor.Abilities{
		Machines: []string{"pc-q35-10.0", "pc-q35-9.2"},
		CPU:      hypervisor.CPU{Vendor: "AMD", Model: "EPYC-Milan", Features: []string{"aes", "avx", "avx2", "sse2"}, AddressBits: 48},
		Firmware: hypervisor.FirmwareAbilities{UEFI: true, SecureBoot: true, TPM: true},
	}
}

// SetAbilities gives it others, as another QEMU on another processor has them.
func (d *Driver) SetAbilities(a hypervisor.Abilities) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abilities = a
}

// Boot ends the boot of a running guest: its agent answers.
func (d *Driver) Boot(id api.InstanceID) { d.change(id, hypervisor.Running, d.boot) }

// Crash is QEMU dying, or the guest panicking.
func (d *Driver) Crash(id api.InstanceID, reason string) {
	d.change(id, hypervisor.Running, func(dom *domain) {
		d.set(dom, hypervisor.Crashed, reason, hypervisor.EventCrashed)
	})
}

// PowerOff is the guest shutting itself down.
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

// Hold makes the running guest let go of no device, or again of all: of those
// that it was asked for meanwhile the next time that it is asked.
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

// Grown is the size that a disk was given while the domain ran; 0: none.
func (d *Driver) Grown(id api.InstanceID, serial string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom, ok := d.domains[id]
	if !ok {
		return 0
	}
	return dom.sizes[serial]
}

// Secrets that are set now, by UUID.
func (d *Driver) Secrets() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.secrets))
}

// Lose forgets a domain without an event, as if somebody had removed it behind
// our back while nobody watched.
func (d *Driver) Lose(id api.InstanceID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.domains, id)
}

// Reconnect is libvirtd having been away: everyone is told to look again.
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
