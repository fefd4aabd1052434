package wireguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Config is the configuration of a node.
type Config struct {
	Dir  string // private keys
	Host Host
	// Links creates interfaces; nil: Host.
	Links Links
	// Device is the prefix of the interfaces' names; empty: basalt-wg.
	Device string
	Now    func() time.Time // nil: time.Now
}

// DevicePrefix begins the names of the interfaces; the generation's parity follows.
const DevicePrefix = "basalt-wg"

// Devices are the names of the interfaces.
var Devices = []string{DevicePrefix + "0", DevicePrefix + "1"}

// unknown is the Report.Send of a node that could not find out.
const unknown = -1

// Node carries out what is decided on one node.
type Node struct {
	c Config

	mu       sync.Mutex // one step at a time
	send     int        // generation that it sends with, as last carried out
	enforced bool
	filter   string // the rules that were set, and as the kernel listed them then
	kernel   string
	off      bool // nothing is left of earlier states
}

// NewNode returns a node. It finds out in the first step what it has carried out before.
func NewNode(c Config) *Node {
	if c.Links == nil {
		c.Links = c.Host
	}
	if c.Device == "" {
		c.Device = DevicePrefix
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Node{c: c, send: unknown, enforced: true}
}

func (n *Node) device(generation int) string { return fmt.Sprint(n.c.Device, generation%2) }

func (n *Node) devices() []string { return []string{n.device(0), n.device(1)} }

// Step carries the intent out as far as possible, and reports what it has.
func (n *Node) Step(ctx context.Context, in Intent) Report {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := Report{Address: in.Address, Serial: in.State.Serial}
	if in.Address.IsLoopback() || !in.Address.IsValid() {
		return r // the node is alone
	}
	if n.off && !in.State.On() {
		return r
	}
	var faults []error
	fault := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if in.Userspace && in.State.On() {
		fault(errors.New("this node's Open vSwitch forwards in user space (--datapath), whose tunnels cannot be encrypted: load the kernel module openvswitch, or turn the encryption of tunnels off"))
	}
	for _, generation := range in.State.Keys {
		k, err := n.key(ctx, in, generation)
		fault(err)
		if k.Public != "" {
			r.Keys = append(r.Keys, k)
		}
	}
	// What sends in plain passes the filter before it may, and the other way round.
	if in.State.Send == 0 {
		fault(n.enforce(ctx, in.State))
		fault(n.sendWith(ctx, in))
	} else {
		fault(n.sendWith(ctx, in))
		fault(n.enforce(ctx, in.State))
	}
	if len(faults) == 0 { // otherwise tunnels may still use an interface
		fault(n.removeOthers(ctx, in.State.Keys))
	}
	n.off = len(faults) == 0 && !in.State.On()
	r.Send, r.Enforced, r.Problem = n.send, n.enforced, text(errors.Join(faults...))
	return r
}

// text returns an error on one line.
func text(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// key creates and configures the interface of a generation. It returns the public key
// also if others cannot be reached.
func (n *Node) key(ctx context.Context, in Intent, generation int) (k Key, err error) {
	private, err := privateKey(n.c.Dir, generation)
	if err != nil {
		return k, err
	}
	public, err := private.public()
	if err != nil {
		return k, err
	}
	name, mtu := n.device(generation), in.MTU
	if mtu == 0 {
		mtu = 1500
	}
	have, err := n.c.Host.link(ctx, name)
	if err != nil {
		return k, err
	}
	if have == nil {
		if err := n.c.Links.Create(ctx, name, mtu); err != nil {
			return k, fmt.Errorf("create interface %s: %w", name, err)
		}
	}
	// The MTU is that of the interface below: networks from before the encryption have
	// packets that are too large for one packet with its header, and are sent in two.
	if _, err := n.c.Host.run(ctx, "", "ip", "link", "set", "dev", name, "mtu", fmt.Sprint(mtu), "up"); err != nil {
		return k, err
	}
	if err := n.c.Host.acceptPlainWayBack(ctx, in.Address, name); err != nil {
		return k, err
	}
	connected, err := configure(name, private, int(PortOf(generation)), in.peers(generation), n.c.Now())
	if err != nil {
		return k, err
	}
	return Key{Generation: generation, Public: public.String(), Connected: connected}, nil
}

// sendWith routes the tunnels' packets.
func (n *Node) sendWith(ctx context.Context, in Intent) error {
	var err error
	if in.State.Send == 0 {
		err = n.c.Host.unroute(ctx, family(in.Address))
	} else {
		err = n.c.Host.route(ctx, in.Address, n.device(in.State.Send), in.routed())
	}
	if err == nil {
		n.send = in.State.Send
	}
	return err
}

// enforce sets or removes the rules that drop plain packets.
func (n *Node) enforce(ctx context.Context, s State) error {
	rules := filter(n.devices(), s.Enforced, s.Send != 0)
	if rules == "" {
		err := n.c.Host.removeFilter(ctx)
		if err == nil {
			n.enforced, n.filter = false, ""
		}
		return err
	}
	have, err := n.c.Host.filtering(ctx)
	if err != nil || have != "" && have == n.kernel && rules == n.filter {
		return err
	}
	if err := n.c.Host.setFilter(ctx, rules); err != nil {
		return err
	}
	n.enforced, n.filter = s.Enforced, rules
	n.kernel, err = n.c.Host.filtering(ctx)
	return err
}

// removeOthers removes the interfaces and the keys of other generations.
func (n *Node) removeOthers(ctx context.Context, keep []int) error {
	wanted := map[string]bool{}
	for _, generation := range keep {
		wanted[n.device(generation)] = true
	}
	for _, name := range n.devices() {
		if wanted[name] {
			continue
		}
		if have, err := n.c.Host.link(ctx, name); err != nil {
			return err
		} else if have != nil {
			if err := n.c.Links.Remove(ctx, name); err != nil {
				return fmt.Errorf("remove interface %s: %w", name, err)
			}
		}
	}
	return removeKeys(n.c.Dir, keep)
}
