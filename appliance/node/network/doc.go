// Package network is a node's part in the cluster's network: it deploys OVN's
// daemons on the node (Node), serves metadata to the node's guests (Metadata), and
// meters traffic that leaves the cluster there (Egress). The leader decides the
// wanted state (appliance/controlplane/network).
package network

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Store writes the node's objects.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// maxCommands is the number of commands in one batch, which keeps log entries
// small.
const maxCommands = 256
