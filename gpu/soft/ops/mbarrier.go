package ops

import "fmt"

// MBarrier is an mbarrier object (PTX ISA, "Parallel Synchronization and Communication
// Instructions: mbarrier"), which is opaque to programs. Ours is:
//
//	bits  0–19  pending arrivals of the phase
//	bits 20–39  expected arrivals of the next phase
//	bits 40–60  pending transactions, a signed number
//	bit  63     the parity of the phase
//
// A phase ends when neither arrivals nor transactions are pending. The state that an
// arrival returns is the object before it.
type MBarrier uint64

const (
	mbarrierCounts = 1<<20 - 1 // the largest count of arrivals or transactions
	mbarrierPhase  = 63
)

// NewMBarrier returns an object in its first phase.
func NewMBarrier(count uint32) (MBarrier, error) {
	if count == 0 || count > mbarrierCounts {
		return 0, fmt.Errorf("mbarrier.init with %d arrivals, want 1 to %d", count, mbarrierCounts)
	}
	return mbarrierOf(count, count, 0, 0), nil
}

func mbarrierOf(pending, expected uint32, tx int64, phase uint64) MBarrier {
	return MBarrier(uint64(pending) | uint64(expected)<<20 | uint64(tx)&(1<<21-1)<<40 | phase<<mbarrierPhase)
}

// Pending returns how many arrivals are pending.
func (b MBarrier) Pending() uint32 { return uint32(b & mbarrierCounts) }

func (b MBarrier) expected() uint32 { return uint32(b >> 20 & mbarrierCounts) }
func (b MBarrier) tx() int64        { return int64(b<<3) >> 43 }
func (b MBarrier) phase() uint64    { return uint64(b >> mbarrierPhase) }

// ended returns the object in its next phase if this one has ended.
func (b MBarrier) ended() MBarrier {
	if b.Pending() != 0 || b.tx() != 0 {
		return b
	}
	return mbarrierOf(b.expected(), b.expected(), 0, b.phase()^1)
}

// Arrive returns the object after count arrivals. With drop, later phases expect that
// many less.
func (b MBarrier) Arrive(count uint32, drop bool) (MBarrier, error) {
	if count == 0 || count > b.Pending() {
		return b, fmt.Errorf("%d arrivals at an mbarrier, want 1 to the %d that are pending", count, b.Pending())
	}
	expected := b.expected()
	if drop {
		expected -= count
	}
	return mbarrierOf(b.Pending()-count, expected, b.tx(), b.phase()).ended(), nil
}

// Expect returns the object after an increase of the pending transactions by n. It
// never ends the phase.
func (b MBarrier) Expect(n int64) (MBarrier, error) {
	tx := b.tx() + n
	if tx > mbarrierCounts || tx < -mbarrierCounts {
		return b, fmt.Errorf("%d pending transactions at an mbarrier, want -%d to %d", tx, mbarrierCounts, mbarrierCounts)
	}
	return mbarrierOf(b.Pending(), b.expected(), tx, b.phase()), nil
}

// Complete returns the object after n transactions.
func (b MBarrier) Complete(n int64) (MBarrier, error) {
	b, err := b.Expect(-n)
	if err != nil || b.expected() == 0 && b.Pending() == 0 {
		return b, err
	}
	return b.ended(), nil
}

// Ended reports whether the phase of a state, which is the object's phase or the one
// before it, has ended.
func (b MBarrier) Ended(state MBarrier) bool { return b.phase() != state.phase() }

// EndedParity reports whether the phase of a parity has ended.
func (b MBarrier) EndedParity(parity uint32) bool { return b.phase() != uint64(parity&1) }
