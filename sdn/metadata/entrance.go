package metadata

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// maxDialing limits concurrent dials: each holds a thread.
const maxDialing = 64

var dialing = make(chan struct{}, maxDialing)

// Dial opens a TCP connection to a guest of this node, from the node's address
// in its network. The ACLs of every port allow this. Only addresses of the
// guests are accepted: the namespace also has a loopback interface, and the
// node's services for guests.
func (s *Service) Dial(ctx context.Context, network api.NetworkID, to netip.AddrPort) (net.Conn, error) {
	found, ok := s.entrances.Load(network)
	if !ok {
		return nil, fmt.Errorf("dial %s: network %s is not served on this node", to, network)
	}
	r := found.(*running)
	if !r.network.CIDR.Contains(to.Addr()) {
		return nil, fmt.Errorf("dial %s in network %s: not an address of %s", to, network, r.network.CIDR)
	}
	select {
	case dialing <- struct{}{}:
		defer func() { <-dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var c net.Conn
	err := r.namespace.inside(func() (err error) {
		var d net.Dialer // a single address is dialed on this thread, so the socket is in the namespace
		c, err = d.DialContext(ctx, "tcp", to.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dial a guest in network %s: %w", network, err)
	}
	return c, nil
}
