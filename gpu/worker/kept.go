package worker

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// The guest may keep memory that it has freed for its next allocations, which then
// cost no command at all (decision 34). It is used in the account, and stays an
// allocation of its context: nothing that others rely on depends on what the guest
// writes into the words. As much as the cushion may be kept, so it too is only where
// nobody misses it; the worker takes it back when the cushion goes, when gpud
// recalls, and when an allocation finds no memory.

// sendKeepLimit writes how much the guest may keep to the session's memory.
func (s *Session) sendKeepLimit() {
	most := s.account.Cushion()
	s.shared.Store64(abi.OffKeepMost, most)
	if most > 0 {
		s.keeping.Store(true)
	}
}

// kept returns how many bytes the guest keeps.
func (s *Session) kept() (bytes uint64) {
	for i := range uint64(abi.MaxKept) {
		if a, ok := s.handles.allocs[s.shared.Load64(abi.OffKept+8*i)]; ok {
			bytes += Accounted(a.size)
		}
	}
	return min(bytes, s.account.Used()) // a guest can write an address twice
}

// reclaim frees what the guest keeps, and reports whether that was anything. What
// work of the context may still use comes back when that is done.
func (s *Session) reclaim() (some bool) {
	if s.shared == nil {
		return false
	}
	s.keeping.Store(false)
	s.shared.Store64(abi.OffKeepMost, 0)
	for i := range uint64(abi.MaxKept) {
		word := abi.OffKept + 8*i
		address := s.shared.Load64(word)
		if address == 0 || !s.shared.CAS64(word, address, 0) {
			continue
		}
		c := command{entry: entry{op: abi.OpMemFree, slot: abi.NoSlot}}
		a, err := s.allocation(&c, address)
		if err == nil {
			err = s.free(&c, address, a)
			some = true
		}
		if err != nil && !errors.Is(err, errLater) {
			s.log.Debug("free memory kept for the guest failed", "error", err)
		}
	}
	return some
}
