package exec

import "sync"

// MachinePool stores machines of launches that have ended for the next launch of the same
// program, as creating a machine takes longer than a small launch. What a kernel reads
// without having written it is then what an earlier one of the same context left, as on
// a GPU. It is safe for concurrent use.
type MachinePool struct {
	mu    sync.Mutex
	list  []*machine // the one used last is the last
	bytes uint64
}

// Limits of what is stored.
const (
	maxPooled      = 64
	maxPooledBytes = 16 << 20
)

// get returns a machine that a block of a launch can use, or nil.
func (p *MachinePool) get(r *Run) *machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.list) - 1; i >= 0; i-- {
		if m := p.list[i]; m.p == r.p && m.warps == warpsOf(r.env) && len(m.shared) == sharedBytes(r.p, r.env) {
			p.remove(i)
			return m
		}
	}
	return nil
}

// remove removes a machine from the list. The caller must hold mu.
func (p *MachinePool) remove(i int) {
	p.bytes -= p.list[i].size()
	p.list = append(p.list[:i], p.list[i+1:]...)
}

// put stores machines whose blocks have ended, and drops the least recently used ones
// if there are too many.
func (p *MachinePool) put(list []*machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range list {
		if m.size() > maxPooledBytes {
			continue
		}
		m.leave()
		p.list = append(p.list, m)
		p.bytes += m.size()
		for len(p.list) > maxPooled || p.bytes > maxPooledBytes {
			p.remove(0)
		}
	}
}
