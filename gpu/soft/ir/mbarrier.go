package ir

// MBarrier is an operation of each lane on an mbarrier object in shared memory (PTX ISA,
// "Parallel Synchronization and Communication Instructions: mbarrier").
type MBarrier struct {
	Access
	What MBarrierOp
	// N is a count of arrivals or of transactions, a state of 64 bits, or a parity; None
	// means one arrival.
	N Ref
	D Ref // the state before an arrival, or the predicate of a wait; None if unused
}

// MBarrierOp is one of the operations on an mbarrier.
type MBarrierOp uint8

// The operations.
const (
	MBarrierInit MBarrierOp = iota
	MBarrierInval
	MBarrierArrive
	MBarrierDrop         // arrive, and expect one less from the next phase on
	MBarrierExpect       // expect N more transactions
	MBarrierComplete     // complete N transactions
	MBarrierArriveExpect // expect N transactions, and arrive once
	MBarrierDropExpect
	MBarrierEnded       // report whether the phase of a state has ended
	MBarrierEndedParity // report whether the phase of a parity has ended
)

// Name implements Op.
func (o *MBarrier) Name() string {
	return "mbarrier." + [...]string{"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "arrive.expect_tx", "arrive_drop.expect_tx", "ended", "ended.parity"}[o.What] + "." + o.text()
}

// Registers implements Op.
func (o *MBarrier) Registers() (results, sources []Ref) {
	return registers(o.D), registers(o.Base, o.N)
}
