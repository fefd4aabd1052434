package worker

import (
	"context"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// LocalHost is a Host without gpud: for one worker with a vGPU of its own. It
// serves tests and programs that embed a worker.
type LocalHost struct {
	limits Limits
	lost   chan struct{}
	shares *localShares

	mu     sync.Mutex // guards the following; an account's mutex is taken under it
	used   uint64     // bytes reserved, including idle ones
	acct   *Account
	leased bool
	last   Totals
	evict  func(uint64) (uint64, error)
	failed error // error of the last restore
	back   int   // number of restores
}

// NewLocalHost returns a host whose worker has the whole vGPU.
func NewLocalHost(l Limits) *LocalHost {
	return &LocalHost{limits: l, lost: make(chan struct{}), shares: newLocalShares()}
}

// localLease is long enough to cost nothing and short enough to be exercised by
// tests.
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
		h.used -= h.acct.DrainIdle()
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
		h.used -= h.acct.DrainSurplus()
	}
}

// Memory implements Host.
func (h *LocalHost) Memory() (free, total uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.limits.VRAM - h.inUse(), h.limits.VRAM, nil
}

// inUse returns the bytes in use; it is called with mu held.
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

// Contended implements Host: the device is not shared.
func (h *LocalHost) Contended() bool { return false }

// Leased reports whether a lease is held.
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

// Reclaimable implements Host. No other session needs what the guest keeps: the
// session itself frees it when there is not enough memory for an allocation.
func (h *LocalHost) Reclaimable(func(done func())) {}

// Evict evicts memory from the device, as gpud would.
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

// Restores returns how often the session tried to restore its memory, and the
// error of the last attempt.
func (h *LocalHost) Restores() (n int, last error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.back, h.failed
}

// Totals returns the last reported totals.
func (h *LocalHost) Totals() Totals {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Faulted implements Host. No other session could learn of it.
func (h *LocalHost) Faulted(abi.Result) {}

// Status implements Host.
func (h *LocalHost) Status() (abi.VGPUStatusReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return abi.VGPUStatusReply{VRAMLimit: h.limits.VRAM, VRAMUsed: h.inUse()}, nil
}

// Lost implements Host.
func (h *LocalHost) Lost() <-chan struct{} { return h.lost }

// Lose ends the session, as when the vGPU is deleted.
func (h *LocalHost) Lose() { close(h.lost) }
