package exec

import "sync"

// Spare keeps machines of launches that have ended for the next launch of the
// same program: a small launch costs less than making one. What a kernel reads
// and has not written is then what an earlier one of the same context left, as
// it is on a card. Launches beside each other may use it.
type Spare struct {
	mu    sync.Mutex
	list  []*machine // the one used last is the last
	bytes uint64
}

// Limits of what is kept.
const (
	maxSpare      = 64
	maxSpareBytes = 16 << 20
)

// take returns a machine that a block of a launch can use, or nil.
func (s *Spare) take(r *Run) *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.list) - 1; i >= 0; i-- {
		if m := s.list[i]; m.p == r.p && m.warps == warpsOf(r.env) && len(m.shared) == sharedBytes(r.p, r.env) {
			s.remove(i)
			return m
		}
	}
	return nil
}

// remove is called with mu held.
func (s *Spare) remove(i int) {
	s.bytes -= s.list[i].size()
	s.list = append(s.list[:i], s.list[i+1:]...)
}

// put keeps machines whose blocks have ended, and forgets those that were not
// used for the longest time where there are too many.
func (s *Spare) put(list []*machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range list {
		if m.size() > maxSpareBytes {
			continue
		}
		m.leave()
		s.list = append(s.list, m)
		s.bytes += m.size()
		for len(s.list) > maxSpare || s.bytes > maxSpareBytes {
			s.remove(0)
		}
	}
}
