package worker

import (
	"context"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// LocalHost is a Host without gpud: one worker with a vGPU of its own that
// need not share. It serves tests and programs that embed a worker.
type LocalHost struct {
	limits Limits
	lost   chan struct{}
	shares *localShares

	mu     sync.Mutex // guards the following; an account's is taken under it
	used   uint64     // bytes reserved, idle ones too
	acct   *Account
	leased bool
	last   Totals
	evict  func(uint64) (uint64, error)
	failed error // the last restore
	back   int   // restores
}

// NewLocalHost gives a worker the whole vGPU.
func NewLocalHost(l Limits) *LocalHost {
	return &LocalHost{limits: l, lost: make(chan struct{}), shares: newLocalShares()}
}

// localLease is long enough not to matter and short enough to be exercised.
const localLease = 20 * time.Millisecond

// Limits implements Host.
func (h *LocalHost) Limits() Limits { return h.limits }

// Account implements Host.
func (h *LocalHost) Account(a *Account) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acct = a
}

// Reserve implements Host.
func (h *LocalHost) Reserve(bytes uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.acct != nil && bytes > h.limits.VRAM-h.used {
		h.used -= h.acct.Recall()
	}
	if bytes > h.limits.VRAM-h.used {
		return abi.ErrOutOfMemory
	}
	h.used += bytes
	if h.acct != nil {
		spare := min(h.acct.Want(), h.limits.VRAM-h.used)
		h.used += spare
		h.acct.Granted(bytes, spare, true)
	}
	return nil
}

// Settle implements Host.
func (h *LocalHost) Settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.acct != nil {
		h.used -= h.acct.Surplus()
	}
}

// Memory implements Host.
func (h *LocalHost) Memory() (free, total uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.limits.VRAM - h.inUse(), h.limits.VRAM, nil
}

// inUse is called with mu held.
func (h *LocalHost) inUse() uint64 {
	if h.acct != nil {
		return h.acct.Used()
	}
	return h.used
}

// Acquire implements Host.
func (h *LocalHost) Acquire(ctx context.Context) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leased = true
	return Lease{Until: time.Now().Add(localLease)}, nil
}

// Yield implements Host.
func (h *LocalHost) Yield() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leased = false
}

// Contended implements Host: nobody shares the device.
func (h *LocalHost) Contended() bool { return false }

// Leased reports whether a lease is out.
func (h *LocalHost) Leased() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leased
}

// Report implements Host.
func (h *LocalHost) Report(t Totals) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = t
}

// Evictable implements Host.
func (h *LocalHost) Evictable(evict func(uint64) (uint64, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.evict = evict
}

// Reclaimable implements Host. Nobody else wants what the guest keeps: the session
// itself frees it when an allocation finds no memory.
func (h *LocalHost) Reclaimable(func(done func())) {}

// Evict moves memory off the device, as gpud would.
func (h *LocalHost) Evict(bytes uint64) (moved uint64, err error) {
	h.mu.Lock()
	evict := h.evict
	h.mu.Unlock()
	if evict == nil {
		return 0, abi.ErrNotSupported
	}
	return evict(bytes)
}

// Restored implements Host.
func (h *LocalHost) Restored(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.back++
	h.failed = err
}

// Restores is how often memory was brought back, or not, and how the last went.
func (h *LocalHost) Restores() (n int, last error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.back, h.failed
}

// Totals is what was reported last.
func (h *LocalHost) Totals() Totals {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Status implements Host.
func (h *LocalHost) Status() (abi.VGPUStatusReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return abi.VGPUStatusReply{VRAMLimit: h.limits.VRAM, VRAMUsed: h.inUse()}, nil
}

// Lost implements Host.
func (h *LocalHost) Lost() <-chan struct{} { return h.lost }

// Lose takes the vGPU away.
func (h *LocalHost) Lose() { close(h.lost) }
