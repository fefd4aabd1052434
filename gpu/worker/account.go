package worker

import "sync"

// Account is a session's VRAM as the worker counts it: the bytes that allocations
// use, and the idle bytes that the host has reserved for the session and that nothing
// uses. The issuer allocates from the idle bytes without a request; the host adds to
// them and recalls them.
//
//	used + idle = what the host's ledger has for the session, without shared memory
//	and without requests and releases in progress
//
// Every method is atomic and calls nothing else, so it can be called with a host's
// own locks held.
type Account struct {
	most uint64 // bytes that may stay idle

	mu        sync.Mutex // guards the following
	used      uint64
	shared    uint64 // bytes shared with other sessions; they are in the vGPU's account
	idle      uint64
	idleLimit uint64 // idle bytes that the host has agreed to; more are surplus
	sole      bool   // no other session of the vGPU has memory
	touched   bool   // allocated from since the last Rest
}

const (
	// maxIdle bounds the bytes that a session holds without using them, and
	// idleShare is the divisor of its vGPU's VRAM for them: a 24 GiB vGPU has
	// 32 MiB, one of 256 MiB has 8 MiB.
	maxIdle   = 32 << 20
	idleShare = 32
)

// NewAccount returns an empty account of a session on a vGPU with vram bytes.
func NewAccount(vram uint64) *Account {
	return &Account{most: min(vram/idleShare, maxIdle) &^ (AllocUnit - 1)}
}

// Want returns how many idle bytes the host should add to the requested ones.
func (a *Account) Want() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most - min(a.idle, a.most)
}

// Granted adds bytes that the host has reserved: bytes are used from now on,
// spare are idle. sole reports that no other session of the vGPU has memory, or
// will have any before DrainIdle. It must be called in the order in which the host
// decided.
func (a *Account) Granted(bytes, spare uint64, sole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used += bytes
	a.idle += spare
	if spare > 0 { // otherwise the host has none to spare; idle bytes were agreed to before, or are surplus
		a.idleLimit = min(max(a.idleLimit, a.idle), a.most)
	}
	a.touched = true
	a.sole = sole
}

// IdleBytes returns how many idle bytes the host has agreed to.
func (a *Account) IdleBytes() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.idleLimit
}

// SetSole records whether no other session of the vGPU has memory.
func (a *Account) SetSole(sole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sole = sole
}

// Take moves bytes from idle to used; it returns false if there are not enough.
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
	return a.idle > a.idleLimit
}

// DrainSurplus removes and returns the idle bytes beyond that; the caller gives
// them back to the ledger.
func (a *Account) DrainSurplus() (bytes uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes = a.idle - min(a.idleLimit, a.idle)
	a.idle -= bytes
	return bytes
}

// DrainIdle removes and returns all idle bytes. Until the next Granted no bytes stay
// idle, and other sessions may have memory of the vGPU.
func (a *Account) DrainIdle() (bytes uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes, a.idle, a.idleLimit, a.sole = a.idle, 0, 0, false
	return bytes
}

// Detach records that the host has lost the connection to gpud: whether others have
// memory is no longer known, and idle bytes are given back to the next gpud.
func (a *Account) Detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.idleLimit, a.sole = 0, false
}

// Rest must be called at intervals: an idle limit from which nothing was taken since the
// last call becomes surplus. It reports whether that happened (rests), and whether
// there is a surplus.
func (a *Account) Rest() (rests, surplus bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rests = !a.touched
	if rests {
		a.idleLimit = 0
	}
	a.touched = false
	return rests, a.idle > a.idleLimit
}

// Used returns the bytes that allocations use, including shared ones.
func (a *Account) Used() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used + a.shared
}

// Shared moves bytes from used to shared. Others may open them, so only the host
// knows the free bytes from then on.
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

// Unshared removes bytes that are no longer shared with this session; with keep, they
// count as used again.
func (a *Account) Unshared(bytes uint64, keep bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shared -= min(bytes, a.shared)
	if keep {
		a.used += bytes
	}
}

// Free returns how many of the vGPU's bytes are free; it returns false if only
// the host knows.
func (a *Account) Free(vram uint64) (uint64, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return vram - min(a.used+a.shared, vram), a.sole
}
