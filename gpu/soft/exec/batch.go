package exec

// A machine takes several blocks from its launch at a time, where blocks are short
// what comes between them counts.

// maxBatch is how many.
const maxBatch = 16

// batch is blocks that only one machine begins.
type batch struct{ from, to uint64 }

// take is the next block that begins, and all of its cluster; mu is held.
func (r *Run) take() uint64 {
	if last := len(r.left) - 1; last >= 0 {
		b := &r.left[last]
		b.from++
		block := b.from - 1
		if b.from == b.to {
			r.left = r.left[:last]
		}
		return block
	}
	r.next += uint64(r.size)
	return r.next - uint64(r.size)
}

// reserve is a batch of the next blocks, so few that others have some to do at the
// end; mu is held.
func (r *Run) reserve() batch {
	n := min(maxBatch, (r.total-r.next)/uint64(8*r.workers))
	r.next += n
	return batch{r.next - n, r.next}
}

// beginNext puts a machine whose block has ended at the start of the next one of its
// batch.
func (m *machine) beginNext() bool {
	if m.batch.from == m.batch.to || m.of.pause.Load() {
		return false
	}
	m.through++
	m.batch.from++
	c, block := m.first(m.of), m.batch.from-1
	if block != m.block+1 {
		m.beginBlock(c, 0, block)
		return true
	}
	at := m.ctaid
	for i, n := range m.env.Grid { // no division: those take longer than the rest
		if at[i]++; at[i] < n {
			break
		}
		at[i] = 0
	}
	m.beginAt(c, 0, block, at)
	return true
}
