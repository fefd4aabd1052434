// Package network is a node's part in the cluster's network: it keeps OVN's daemons
// as they should be (Node), answers the node's guests (Metadata), and counts and
// records what leaves there (Egress). What is to be, the leader decides
// (appliance/controlplane/network).
package network

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Store takes what the node writes.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// maxCommands in one batch keeps log entries small.
const maxCommands = 256
