package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Ports connects this node's instances to networks. Every method is idempotent.
type Ports interface {
	// Works returns nil if instances with ports can run on this node, or the reason
	// why not.
	Works(ctx context.Context) error
	// Plug creates the port's tap and connects it. With now set it does not wait
	// until the port's network configuration is in force on this node, as on the
	// target of a migration.
	Plug(ctx context.Context, p Port, now bool) (Tap, error)
	// Unplug removes a port; it returns nil if there is none.
	Unplug(ctx context.Context, port string) error
	// Plugged returns the IDs of all ports that are plugged on this node.
	Plugged(ctx context.Context) ([]string, error)
}

// Port is a network port of an instance.
type Port struct {
	ID      string // api.PortName
	Network api.NetworkID
	MAC     string
	Queues  int // of its network card; one if 0
}

// Tap is the device that a machine's network card is connected to.
type Tap struct {
	Name      string
	MTU       int  // bytes
	NoOffload bool // the guest computes its checksums itself
}

// portSet plugs and unplugs the ports of this node's instances.
type portSet struct{ *core }

// plug plugs the instance's ports, and returns the network cards of its machine.
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

// list returns the IDs of all ports that are plugged on this node.
func (ps *portSet) list(ctx context.Context) ([]string, error) {
	all, err := ps.o.Ports.Plugged(ctx)
	return all, wrap(err, "list the network ports of this node")
}

// plugged returns the ports of the instance that are plugged on this node.
func (ps *portSet) plugged(ctx context.Context, id api.InstanceID) (ports []string, err error) {
	if ps.o.Ports == nil {
		return nil, nil
	}
	all, err := ps.list(ctx)
	for _, p := range all {
		if owner, ok := api.PortInstance(p); ok && strings.EqualFold(string(owner), string(id)) {
			ports = append(ports, p)
		}
	}
	return ports, err
}

// unplug unplugs the ports of an instance whose machine has ended.
func (ps *portSet) unplug(ctx context.Context, id api.InstanceID) error {
	ports, err := ps.plugged(ctx, id)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range ports {
		errs = append(errs, wrap(ps.o.Ports.Unplug(ctx, p), "unplug network port %s", p))
	}
	return errors.Join(errs...)
}

// sweep unplugs the ports of instances that are not this node's and are not being
// migrated to it.
func (ps *portSet) sweep(ctx context.Context) error {
	if ps.o.Ports == nil {
		return nil
	}
	all, err := ps.list(ctx)
	errs := []error{err}
	for _, p := range all {
		id, ok := api.PortInstance(p)
		if !ok {
			continue // not a port of an instance
		}
		if _, mine := get(ps.cache, ps.cache.instances, string(id)); mine {
			continue // its own reconcile handles it
		}
		gone, _, err := ps.notMine(ctx, api.KindInstance, string(id))
		if err == nil && gone {
			ps.log.Warn("unplugging port of an instance that belongs to another node", "port", p)
			err = wrap(ps.o.Ports.Unplug(ctx, p), "unplug network port %s", p)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
