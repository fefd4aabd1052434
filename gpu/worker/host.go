package worker

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Host is what a worker needs of gpud. gpu/gpud/client implements it over
// gpud's socket and survives gpud's restart: it registers again, with the
// memory held and the totals so far, and keeps the last lease meanwhile.
type Host interface {
	// Limits of the vGPU that this worker serves.
	Limits() Limits
	// Account gives the host the session's account, before any Reserve. The host
	// keeps it as gpud's ledger says (Granted, Recall), from any goroutine.
	Account(a *Account)
	// Reserve takes bytes from the vGPU's VRAM, used in the account when it returns;
	// the host may add idle ones. It fails with abi.ErrOutOfMemory when the vGPU's
	// limit or the card's capacity would be passed, though nothing is idle
	// in any session of the vGPU.
	Reserve(bytes uint64) error
	// Settle gives the account's surplus back. It does not wait.
	Settle()
	// Memory is free and total bytes of the vGPU: what is idle in an account is free.
	Memory() (free, total uint64, err error)
	// Acquire waits for the right to run on the device.
	Acquire(ctx context.Context) (Lease, error)
	// Yield gives it back early: no work is left.
	Yield()
	// Contended reports whether somebody else waits for the device, or may: then a
	// lease must end in time.
	Contended() bool
	// Evictable gives the host a function that moves at least bytes of the
	// session's memory, or all of it, off the device and says how many have
	// gone: bytes of what was reserved. It is called before any Reserve, if at
	// all; the host calls the function from any goroutine while the session has
	// no lease. The next lease must find room for the memory to come back.
	Evictable(evict func(bytes uint64) (moved uint64, err error))
	// Reclaimable gives the host a function that frees what the guest has freed and
	// keeps for itself (kept.go), and then calls done: what needed no wait for the
	// device is idle in the account by then. The host calls it from any goroutine,
	// with no lock held; done is called on the issuer, or never when the session ends
	// meanwhile, and must not wait.
	Reclaimable(reclaim func(done func()))
	// Restored is told that a lease has brought the memory back, or why it has not; then
	// all of it is off the device.
	Restored(err error)
	// Share makes size bytes of an allocation, which is used in the account, memory that
	// sessions of the vGPU may have in common: it counts as none's, and does not leave
	// the device. It fails with abi.ErrOutOfMemory where that would be too much, and
	// with abi.ErrNotSupported where the host knows no other sessions.
	Share(token ShareToken, size uint64) error
	// Publish lets those open it that know the token. The file stays the caller's.
	Publish(token ShareToken, m Shared) error
	// OpenShared returns what another session has published, with a file of the
	// caller's. abi.ErrInvalidHandle: there is none by that token.
	OpenShared(token ShareToken) (Shared, error)
	// Unshare gives up what Share or OpenShared gave; keep: nobody else has had it, and
	// it is the session's own again, used in the account. It does not wait.
	Unshare(token ShareToken, keep bool)
	// Report sends totals since the worker started. They only grow.
	Report(Totals)
	// Status of the whole vGPU, for nvidia-smi.
	Status() (abi.VGPUStatusReply, error)
	// Lost is closed when the vGPU is gone and the worker must end.
	Lost() <-chan struct{}
}

// Limits of a vGPU.
type Limits struct {
	Name string // as nvidia-smi shows it
	UUID [16]byte
	VRAM uint64 // bytes
	// Interop: the operator lets guests answer the vendor runtime's authenticity
	// query (docs/vendor-interop.md). A session has what was so when it began.
	Interop bool
}

// features are the header's word of what the operator has turned on.
func (l Limits) features() (on uint32) {
	if l.Interop {
		on |= abi.FeatureInterop
	}
	return on
}

// Lease says until when the worker may run.
type Lease struct{ Until time.Time }

// Totals of one worker since it started, exact sums from completed work.
type Totals struct {
	GPUNanos        uint64 `json:"gpuNanos"`
	Launches        uint64 `json:"launches"`
	BytesToDevice   uint64 `json:"bytesToDevice"`
	BytesFromDevice uint64 `json:"bytesFromDevice"`
}
