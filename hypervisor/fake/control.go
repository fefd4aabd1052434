package fake

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

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
