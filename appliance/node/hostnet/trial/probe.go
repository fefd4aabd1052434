package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// Times of the probe.
const (
	// ProbeTime is how long the targets may take to answer: a switch's port may
	// block for 30 s after its link was down (IEEE 802.1D), and DHCP takes time.
	ProbeTime = 45 * time.Second
	probeWait = time.Second
	askTime   = 3 * time.Second
)

// Target is a target of a probe: a gateway, or HOST:PORT, which must accept a TCP
// connection.
type Target struct {
	Gateway netip.Addr
	Link    string // device of a gateway that is a link-local address
	Peer    string
}

func (t Target) String() string {
	if t.Gateway.IsValid() {
		return "gateway " + t.Gateway.String()
	}
	return t.Peer
}

// Gateways returns the gateways of a declaration as targets.
func Gateways(n *hostnet.Network) []Target {
	var all []Target
	for _, l := range n.Links() {
		for _, g := range l.Gateways {
			t := Target{Gateway: g}
			if g.IsLinkLocalUnicast() {
				d, _ := Device(n, l)
				t.Link = d.Name
			}
			all = append(all, t)
		}
	}
	return all
}

// required returns the targets that must answer on trial: those that answered
// before, and new ones. A target that did not answer before proves nothing. It is
// pure.
func required(before map[Target]bool, now []Target) []Target {
	var must []Target
	for _, t := range now {
		if answered, asked := before[t]; answered || !asked {
			must = append(must, t)
		}
	}
	return must
}

// Prober probes the network before a trial, and then checks that it works as well
// on trial.
type Prober struct {
	before map[Target]bool
	now    []Target
	n      *hostnet.Network
}

// NewProber probes the gateways of the confirmed declaration (nil if there is none)
// and the peers now. The returned Prober checks those of next.
func NewProber(ctx context.Context, confirmed, next *hostnet.Network, peers []string) *Prober {
	targets := func(n *hostnet.Network) []Target {
		var all []Target
		if n != nil {
			all = Gateways(n)
		}
		for _, p := range peers {
			all = append(all, Target{Peer: p})
		}
		return all
	}
	return &Prober{before: answers(ctx, confirmed, targets(confirmed)), now: targets(next), n: next}
}

// Required returns the targets that must answer.
func (p *Prober) Required() []Target { return required(p.before, p.now) }

// Probe checks the network until it works, for at most ProbeTime, and then returns
// what is wrong.
func (p *Prober) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTime)
	defer cancel()
	tick := time.NewTicker(probeWait)
	defer tick.Stop()
	for {
		wrong := p.check(ctx)
		if wrong == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, after %v", wrong, ProbeTime)
		case <-tick.C:
		}
	}
}

func (p *Prober) check(ctx context.Context) error {
	for _, l := range p.n.WithRole(hostnet.Management) {
		if err := p.up(l); err != nil {
			return err
		}
	}
	got := answers(ctx, p.n, p.Required())
	for _, t := range p.Required() {
		if !got[t] {
			return fmt.Errorf("%s does not answer", t)
		}
	}
	return nil
}

// up returns an error unless the link is up and has its addresses.
func (p *Prober) up(l *hostnet.Link) error {
	d, ok := Device(p.n, l)
	if !ok {
		return fmt.Errorf("%s does not exist", l.Name)
	}
	if d.Flags&net.FlagRunning == 0 {
		return fmt.Errorf("%s has no link", l.Name)
	}
	if want := p.n.PacketSize(l); d.MTU != want {
		return fmt.Errorf("%s has an MTU of %d bytes, want %d", l.Name, d.MTU, want)
	}
	list, err := d.Addrs()
	if err != nil {
		return err
	}
	var has []netip.Addr
	for _, a := range list {
		if x, err := netip.ParsePrefix(a.String()); err == nil && !x.Addr().IsLinkLocalUnicast() {
			has = append(has, x.Addr())
		}
	}
	if len(has) == 0 {
		return fmt.Errorf("%s has no address", l.Name)
	}
	for _, want := range l.Static {
		if !slices.Contains(has, want.Addr()) {
			return fmt.Errorf("%s does not have address %s", l.Name, want.Addr())
		}
	}
	return nil
}

// answers probes all targets of a declaration, or nil, concurrently.
func answers(ctx context.Context, n *hostnet.Network, targets []Target) map[Target]bool {
	type answer struct {
		t  Target
		ok bool
	}
	got := make(chan answer, len(targets))
	for _, t := range targets {
		go func() { got <- answer{t, ask(ctx, n, t)} }()
	}
	all := map[Target]bool{}
	for range targets {
		a := <-got
		all[a.t] = a.ok
	}
	return maps.Clone(all)
}

func ask(ctx context.Context, n *hostnet.Network, t Target) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if t.Gateway.IsValid() {
		return neighbour(ctx, t)
	}
	var d net.Dialer
	if own := sender(n, t.Peer); own.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: own.AsSlice()}
	}
	c, err := d.DialContext(ctx, "tcp", t.Peer)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// sender returns the node's address in the declared network of a peer, or the zero Addr.
// Until a link has its address, the peer's is reached by the default route, where a
// gateway or a proxy may answer in its place. It is pure.
func sender(n *hostnet.Network, peer string) netip.Addr {
	to, err := netip.ParseAddrPort(peer)
	if n == nil || err != nil {
		return netip.Addr{}
	}
	for _, l := range n.Links() {
		for _, p := range l.Static {
			if p.Contains(to.Addr()) {
				return p.Addr()
			}
		}
	}
	return netip.Addr{}
}

// neighbour has the kernel resolve a gateway's MAC address again: many gateways
// answer nothing else.
func neighbour(ctx context.Context, t Target) bool {
	to := t.Gateway.String()
	// The kernel's earlier entry proves nothing; there may be none, so errors are
	// ignored.
	_ = exec.CommandContext(ctx, "ip", "neigh", "flush", "to", to).Run()
	host := to
	if t.Link != "" {
		host += "%" + t.Link
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(host, "9")) // discard (RFC 863)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	for ctx.Err() == nil {
		if _, err := c.Write([]byte{0}); err != nil && errors.Is(err, net.ErrClosed) {
			return false
		}
		out, err := exec.CommandContext(ctx, "ip", "-json", "neigh", "show", "to", to).Output()
		if err == nil && reachable(out) {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(askTime / 20):
		}
	}
	return false
}

// reachable parses ip's output for a neighbour. A neighbour that has just answered
// has its MAC address in it.
func reachable(out []byte) bool {
	var all []struct {
		MAC   string   `json:"lladdr"`
		State []string `json:"state"`
	}
	if json.Unmarshal(out, &all) != nil {
		return false
	}
	for _, n := range all {
		if n.MAC != "" && !strings.Contains(strings.Join(n.State, " "), "FAILED") {
			return true
		}
	}
	return false
}
