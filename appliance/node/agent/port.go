package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Ports join this node's instances to networks. Every verb is idempotent.
type Ports interface {
	// Works is nil when instances with ports can run here, else it says why not.
	Works(ctx context.Context) error
	// Plug makes the port's tap and joins it. now: whether or not what the
	// network says of the port is in force here yet (a target of a migration).
	Plug(ctx context.Context, p Port, now bool) (Tap, error)
	// Unplug removes it; one that is not there is no error.
	Unplug(ctx context.Context, port string) error
	// Plugged are the ids of all ports that are plugged here.
	Plugged(ctx context.Context) ([]string, error)
}

// Port of an instance.
type Port struct {
	ID      string // api.PortName
	Network api.NetworkID
	MAC     string
	Queues  int // of its card; 0: one
}

// Tap that a machine's network card is put on.
type Tap struct {
	Name      string
	MTU       int  // bytes
	NoOffload bool // the guest makes its checksums itself
}

// portSet plugs and unplugs the ports of this node's instances.
type portSet struct{ *core }

// plug the instance's ports: the network cards of its machine.
func (ps *portSet) plug(ctx context.Context, in api.Instance, now bool) ([]hypervisor.NIC, error) {
	ports := in.Assignment.Ports
	if len(ports) == 0 {
		return nil, nil
	}
	if ps.o.Ports == nil {
		return nil, api.Errorf(api.CodeUnavailable, "networks are not available on this node").
			WithHint("run basaltd with --network ovn")
	}
	var nics []hypervisor.NIC
	queues := int(in.Status.Machine.NICQueues)
	for n, p := range ports {
		tap, err := ps.o.Ports.Plug(ctx, Port{ID: api.PortName(api.InstanceID(in.Meta.ID), n), Network: p.Network, MAC: p.Mac, Queues: queues}, now)
		if err != nil {
			return nil, fmt.Errorf("network port %d: %w", n, err)
		}
		nics = append(nics, hypervisor.NIC{MAC: p.Mac, Tap: tap.Name, MTU: tap.MTU, NoOffload: tap.NoOffload, Queues: queues})
	}
	return nics, nil
}

// plugged are the ports of the instance that are plugged here.
func (ps *portSet) plugged(ctx context.Context, id api.InstanceID) (ports []string, err error) {
	if ps.o.Ports == nil {
		return nil, nil
	}
	all, err := ps.o.Ports.Plugged(ctx)
	for _, p := range all {
		if owner, ok := api.PortInstance(p); ok && strings.EqualFold(string(owner), string(id)) {
			ports = append(ports, p)
		}
	}
	return ports, err
}

// unplug the ports of an instance whose machine is no more.
func (ps *portSet) unplug(ctx context.Context, id api.InstanceID) error {
	ports, err := ps.plugged(ctx, id)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range ports {
		errs = append(errs, ps.o.Ports.Unplug(ctx, p))
	}
	return errors.Join(errs...)
}

// sweep unplugs those of instances that are not this node's and do not
// come here.
func (ps *portSet) sweep(ctx context.Context) error {
	if ps.o.Ports == nil {
		return nil
	}
	all, err := ps.o.Ports.Plugged(ctx)
	errs := []error{err}
	for _, p := range all {
		id, ok := api.PortInstance(p)
		if !ok {
			continue // somebody else's
		}
		if _, mine := get(ps.cache, ps.cache.instances, string(id)); mine {
			continue // its own reconcile looks after it
		}
		gone, _, err := ps.notMine(ctx, api.KindInstance, string(id))
		if err == nil && gone {
			ps.log.Warn("unplugging port of an instance that belongs to another node", "port", p)
			err = ps.o.Ports.Unplug(ctx, p)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
