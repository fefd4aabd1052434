package exec

import "sync"

// Spare stores machines of launches that have ended for the next launch of the same
// program, as creating a machine takes longer than a small launch. What a kernel reads
// without having written it is then what an earlier one of the same context left, as on
// a GPU. It is safe for concurrent use.
type Spare struct {
	mu    sync.Mutex
	list  []*machine // the one used last is the last
	bytes uint64
}

// Limits of what is stored.
const (
	maxSpare      = 64
	maxSpareBytes = 16 << 20
)

// get returns a machine that a block of a launch can use, or nil.
func (s *Spare) get(r *Run) *machine {
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

// remove removes a machine from the list. The caller must hold mu.
func (s *Spare) remove(i int) {
	s.bytes -= s.list[i].size()
	s.list = append(s.list[:i], s.list[i+1:]...)
}

// put stores machines whose blocks have ended, and drops the least recently used ones
// if there are too many.
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
