package metadata

import (
	"bufio"
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/basalt-gpu/basalt/sdn"
)

type guestConn struct {
	net.Conn
	reader *bufio.Reader
}

// dial connects to the metadata address as a guest: the socket is created on
// the calling thread.
func dial(ctx context.Context) (*guestConn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	c, err := d.DialContext(ctx, "tcp4", netip.AddrPortFrom(sdn.MetadataAddress, 80).String())
	if err != nil {
		return nil, err
	}
	return &guestConn{c, bufio.NewReader(c)}, c.SetDeadline(time.Now().Add(10 * time.Second))
}
