package worker

import "sync"

// Account is a session's VRAM as the worker counts it: what allocations use, and what
// the host has reserved for the session and nothing uses. The issuer allocates from
// the idle part without asking anybody; the host fills it up and calls it back.
//
//	used + idle = what the host's ledger has for the session, but for shared memory
//	and for requests and releases that are under way
//
// Every method is one step and calls nothing, so that it can be called with a host's
// own locks held.
type Account struct {
	most uint64 // bytes that may be idle for long

	mu      sync.Mutex // guards the following
	used    uint64
	shared  uint64 // what the session has in common with others, whose account is the vGPU's
	idle    uint64
	cushion uint64 // what of idle the host has agreed to; more is surplus
	sole    bool   // no other session of the vGPU has memory
	touched bool   // allocated from since the last Rest
}

const (
	// maxCushion bounds what a session holds without using it, bytes, and
	// cushionShare what part of its vGPU's VRAM that is: a 24 GiB vGPU has 32 MiB,
	// one of 256 MiB has 8.
	maxCushion   = 32 << 20
	cushionShare = 32
)

// NewAccount returns an empty account of a session on a vGPU with so many bytes.
func NewAccount(vram uint64) *Account {
	return &Account{most: min(vram/cushionShare, maxCushion) &^ (AllocUnit - 1)}
}

// Want returns how many idle bytes the host should add to what it is asked for.
func (a *Account) Want() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most - min(a.idle, a.most)
}

// Granted adds what the host has reserved: bytes are used from now on, spare is
// idle. sole reports that no other session of the vGPU has memory, or will have
// any before Recall. It is called in the order in which the host decided.
func (a *Account) Granted(bytes, spare uint64, sole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used += bytes
	a.idle += spare
	if spare > 0 { // else the host has none to spare; what is idle was agreed to before, or is surplus
		a.cushion = min(max(a.cushion, a.idle), a.most)
	}
	a.touched = true
	a.sole = sole
}

// Cushion returns how many idle bytes the host has agreed to.
func (a *Account) Cushion() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cushion
}

// Alone notes that no other session of the vGPU has memory.
func (a *Account) Alone(sole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sole = sole
}

// Take moves bytes from idle to used; false: there are not as many.
func (a *Account) Take(bytes uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if bytes > a.idle {
		return false
	}
	a.idle -= bytes
	a.used += bytes
	a.touched = true
	return true
}

// Put moves bytes from used to idle, and reports whether there is a surplus.
func (a *Account) Put(bytes uint64) (surplus bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes = min(bytes, a.used)
	a.used -= bytes
	a.idle += bytes
	return a.idle > a.cushion
}

// Surplus takes out what is idle beyond the cushion; the caller gives it back to
// the ledger.
func (a *Account) Surplus() (bytes uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes = a.idle - min(a.cushion, a.idle)
	a.idle -= bytes
	return bytes
}

// Recall takes out all that is idle. Until the next Granted nothing stays idle, and
// others may have memory of the vGPU.
func (a *Account) Recall() (bytes uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes, a.idle, a.cushion, a.sole = a.idle, 0, 0, false
	return bytes
}

// Detach notes that the host has lost gpud: whether others have memory is not known
// any more, and what is idle goes back to the gpud that comes.
func (a *Account) Detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cushion, a.sole = 0, false
}

// Rest is called at intervals: a cushion that nothing was taken from since the last
// one becomes surplus. It reports whether that is so (rests), and whether there is a
// surplus.
func (a *Account) Rest() (rests, surplus bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rests = !a.touched
	if rests {
		a.cushion = 0
	}
	a.touched = false
	return rests, a.idle > a.cushion
}

// Used returns the bytes that allocations use, and what is shared.
func (a *Account) Used() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used + a.shared
}

// Shared moves bytes that are used to those that are shared. Others may open them, so
// what is free is the host's to say.
func (a *Account) Shared(bytes uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= min(bytes, a.used)
	a.shared += bytes
	a.sole = false
}

// Opened adds bytes that another session shares.
func (a *Account) Opened(bytes uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shared += bytes
	a.sole = false
}

// Unshared takes out what is shared no longer with this session; keep: it is used again.
func (a *Account) Unshared(bytes uint64, keep bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shared -= min(bytes, a.shared)
	if keep {
		a.used += bytes
	}
}

// Free returns how many of the vGPU's bytes are free; false: only the host knows.
func (a *Account) Free(vram uint64) (uint64, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return vram - min(a.used+a.shared, vram), a.sole
}
