package worker

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Host is what a worker needs of gpud. gpu/gpud/client implements it over gpud's
// socket and handles restarts of gpud: it registers again, with the memory held
// and the totals so far, and keeps the last lease in the meantime.
type Host interface {
	// Limits returns the limits of the vGPU that this worker serves.
	Limits() Limits
	// Account passes the session's account to the host, before any Reserve. The
	// host keeps it consistent with gpud's ledger (Granted, DrainIdle), from any
	// goroutine.
	Account(a *Account)
	// Reserve takes bytes from the vGPU's VRAM; they count as used in the account
	// when it returns, and the host may add idle ones. It fails with
	// abi.ErrOutOfMemory when the vGPU's limit or the card's capacity would be
	// exceeded even though no session of the vGPU has idle bytes.
	Reserve(bytes uint64) error
	// Settle gives back the account's surplus. It does not wait.
	Settle()
	// Memory returns the free and total bytes of the vGPU; idle bytes in accounts
	// count as free.
	Memory() (free, total uint64, err error)
	// Acquire waits for the right to run on the device.
	Acquire(ctx context.Context) (Lease, error)
	// Yield releases the lease early, because no work is left.
	Yield()
	// Contended reports whether other sessions wait for the device, or may be
	// waiting: then a lease must end in time.
	Contended() bool
	// Evictable passes the host a function that evicts at least bytes of the
	// session's memory, or all of it, from the device and returns how many were
	// evicted, in bytes of what was reserved. It is called before any Reserve, if
	// at all; the host calls the function from any goroutine while the session
	// has no lease. The next lease must only be granted when the memory fits on
	// the device again.
	Evictable(evict func(bytes uint64) (moved uint64, err error))
	// Reclaimable passes the host a function that frees the memory that the guest has
	// freed and keeps for itself (kept.go), and then calls done; memory that could be
	// freed without waiting for the device is idle in the account by then. The host
	// calls it from any goroutine, with no lock held. done is called on the issuer,
	// or never if the session ends in the meantime, and must not wait.
	Reclaimable(reclaim func(done func()))
	// Restored tells the host that a lease has restored the memory, or why it has not;
	// then all of it is off the device.
	Restored(err error)
	// Share turns size bytes of an allocation, which count as used in the account, into
	// memory that sessions of the vGPU may share: it counts for no session, and is not
	// evicted. It fails with abi.ErrOutOfMemory if that would be too much, and with
	// abi.ErrNotSupported if the host has no other sessions.
	Share(token ShareToken, size uint64) error
	// Publish lets sessions that know the token open it. The caller keeps the
	// file.
	Publish(token ShareToken, m Shared) error
	// OpenShared returns memory that another session has published; the caller
	// owns its file. abi.ErrInvalidHandle means that the token is unknown.
	OpenShared(token ShareToken) (Shared, error)
	// Unshare gives up what Share or OpenShared returned. keep means that no other
	// session has had it, and that it is the session's own again, used in the account.
	// It does not wait.
	Unshare(token ShareToken, keep bool)
	// Faulted reports that an error has ended the work of a context; it does not wait, and
	// may be called from any goroutine.
	Faulted(r abi.Result)
	// Report sends the totals since the worker started. They never decrease.
	Report(Totals)
	// Status returns the status of the whole vGPU, for nvidia-smi.
	Status() (abi.VGPUStatusReply, error)
	// Lost returns a channel that is closed when the vGPU was deleted and the
	// worker must end.
	Lost() <-chan struct{}
}

// Limits are the limits of a vGPU.
type Limits struct {
	Name string // shown by nvidia-smi
	UUID [16]byte
	VRAM uint64 // bytes
	// Interop means that the operator lets guests answer the vendor runtime's
	// authenticity query (docs/vendor-interop.md). A session keeps the value that
	// it began with.
	Interop bool
}

// features returns the header's word of enabled features.
func (l Limits) features() (on uint32) {
	if l.Interop {
		on |= abi.FeatureInterop
	}
	return on
}

// Lease is the right to run until a point in time.
type Lease struct{ Until time.Time }

// Totals are those of one worker since it started: exact sums of completed work.
type Totals struct {
	GPUNanos        uint64 `json:"gpuNanos"`
	Launches        uint64 `json:"launches"`
	BytesToDevice   uint64 `json:"bytesToDevice"`
	BytesFromDevice uint64 `json:"bytesFromDevice"`
}
