package server

import (
	"context"
	"io"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Store keeps the objects. Package api/storetest says what each method does.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Watch(ctx context.Context, since int64) (<-chan api.Event, error)
	Revision() int64
}

// Runtime reaches what runs on the nodes. Errors that a user may see are
// *api.Error (CodeState: not running; CodeUnavailable: its node is away).
type Runtime interface {
	// ConsoleLog is the end of an instance's serial log, at most tail bytes.
	ConsoleLog(ctx context.Context, id api.InstanceID, tail int64) ([]byte, error)
	// Console opens its serial console; closed by the caller.
	Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)
	// Exec runs a command through the guest agent.
	Exec(ctx context.Context, id api.InstanceID, req api.ExecRequest) (api.ExecResult, error)
	// Leaks is what lies on the node and belongs to nobody.
	Leaks(ctx context.Context, node api.NodeID) ([]api.Leak, error)
	// PutImage takes an image's bytes; size is -1 when it is not known.
	PutImage(ctx context.Context, id api.ImageID, r io.Reader, size int64) error
}

// Secrets seals what operators give and no client may see: what lies in the
// store's files and backups is of no use by itself.
type Secrets interface {
	Seal(ctx context.Context, secret string) (sealed string, err error)
	Open(ctx context.Context, sealed string) (secret string, err error)
}

// Membership answers what the nodes are to each other.
type Membership interface {
	Cluster(ctx context.Context) (api.Cluster, error)
	// NewJoinToken makes a token that carries the id, and the hash of its secret.
	NewJoinToken(ctx context.Context, id api.JoinTokenID) (token, hash string, err error)
	// Backup writes the control plane's state.
	Backup(ctx context.Context, w io.Writer) error
}

// Billing answers what usage costs.
type Billing interface {
	InvoicePreview(ctx context.Context, org api.OrganizationID, from, to time.Time) (api.InvoicePreview, error)
}

// Tracer follows packets through the network.
type Tracer interface {
	Trace(ctx context.Context, q api.TraceQuestion) (api.NetworkTrace, error)
}
