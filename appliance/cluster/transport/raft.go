package transport

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
)

// RaftLayer carries raft between members. A raft.ServerAddress is a node's id;
// the Book knows where that is.
type RaftLayer struct {
	*queue
	self   api.NodeID
	client *Client
}

var _ raft.StreamLayer = (*RaftLayer)(nil)

// Addr is this node's id.
func (l *RaftLayer) Addr() net.Addr { return nodeAddr(l.self) }

// Dial another member on whichever path works.
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
