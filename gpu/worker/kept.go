package worker

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// The guest may keep memory that it has freed for its next allocations, which then
// need no command at all (decision 34). It counts as used in the account, and
// remains an allocation of its context: no one else depends on what the guest writes
// into the words. The guest may keep as much as the idle limit, so it has kept memory
// only where others do not need it; the worker frees it when the idle memory is given
// back, when gpud recalls memory, and when there is not enough memory for an
// allocation.

// sendKeepLimit writes to the session's memory how much the guest may keep.
func (s *Session) sendKeepLimit() {
	most := s.account.IdleBytes()
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

// reclaim frees the memory that the guest keeps, and reports whether there was
// any. Memory that work of the context may still use is freed when that work is
// done.
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
