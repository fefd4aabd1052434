package exec

// A machine reserves several blocks of its launch at a time, as the cost between blocks
// is significant where blocks are short.

// maxBatch is the maximum number of blocks of a batch.
const maxBatch = 16

// batch is a range of blocks that only one machine begins.
type batch struct{ from, to uint64 }

// nextBlock returns the next block that begins, and reserves all of its cluster. The caller
// must hold mu.
func (r *Run) nextBlock() uint64 {
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

// reserve returns a batch of the next blocks, small enough that other machines have
// blocks left at the end. The caller must hold mu.
func (r *Run) reserve() batch {
	n := min(maxBatch, (r.total-r.next)/uint64(8*r.workers))
	r.next += n
	return batch{r.next - n, r.next}
}

// beginNext starts a machine whose block has ended on the next block of its batch, and
// reports whether there is one.
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
	for i, n := range m.env.Grid { // no division, which takes longer than the rest
		if at[i]++; at[i] < n {
			break
		}
		at[i] = 0
	}
	m.beginAt(c, 0, block, at)
	return true
}
