package libvirt

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// Abilities implements hypervisor.Driver. libvirt's answers are long, and change only
// with libvirt and QEMU: they are asked for once of each version.
func (d *Driver) Abilities(ctx context.Context) (hypervisor.Abilities, error) {
	if !RunsQEMU(d.opt.URI) {
		return hypervisor.Abilities{}, ctx.Err()
	}
	return do(ctx, d, "", func(s *session) (hypervisor.Abilities, error) {
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
	a.Machines, err = hypervisor.ParseMachines(text)
	return a, err
}
