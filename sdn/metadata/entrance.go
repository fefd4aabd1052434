package metadata

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// maxDialing is how many dials go on at a time: each holds a thread.
const maxDialing = 64

var dialing = make(chan struct{}, maxDialing)

// Dial opens a TCP connection to a guest of this node, from the metadata address of its
// network. That a guest may be reached from there is in every port's ACLs.
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
		var d net.Dialer // one address: it stays on this thread, and the socket in the namespace
		c, err = d.DialContext(ctx, "tcp4", to.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dial a guest in network %s: %w", network, err)
	}
	return c, nil
}
