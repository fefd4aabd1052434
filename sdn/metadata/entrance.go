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

// Dial opens a TCP connection to a guest of this node, from the metadata
// address of its network. The ACLs of every port allow this.
func (s *Service) Dial(ctx context.Context, network api.NetworkID, to netip.AddrPort) (net.Conn, error) {
	if !to.Addr().Is4() {
		return nil, fmt.Errorf("dial %s in network %s: not an IPv4 address", to, network)
	}
	found, ok := s.entrances.Load(network)
	if !ok {
		return nil, fmt.Errorf("dial %s: network %s is not served on this node", to, network)
	}
	select {
	case dialing <- struct{}{}:
		defer func() { <-dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var c net.Conn
	err := found.(*namespace).inside(func() (err error) {
		var d net.Dialer // a single address is dialed on this thread, so the socket is in the namespace
		c, err = d.DialContext(ctx, "tcp4", to.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dial a guest in network %s: %w", network, err)
	}
	return c, nil
}
