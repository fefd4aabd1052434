package transport

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
)

// RaftLayer carries Raft between members. A raft.ServerAddress is a node's ID; the
// AddressBook has its addresses.
type RaftLayer struct {
	*queue
	self   api.NodeID
	client *Client
}

var _ raft.StreamLayer = (*RaftLayer)(nil)

// Addr returns this node's ID.
func (l *RaftLayer) Addr() net.Addr { return nodeAddr(l.self) }

// Dial connects to another member on any path that works.
func (l *RaftLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx := context.Background()
	if timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = limited
	}
	c, err := l.client.dial(ctx, api.NodeID(address), ProtocolRaft)
	if err != nil {
		return nil, err
	}
	return c, nil
}
