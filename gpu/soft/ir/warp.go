package ir

import "github.com/basalt-gpu/basalt/gpu/soft/ops"

// Exchange is an instruction that exchanges values between the lanes of a warp (PTX
// ISA, "Parallel Synchronization": bar.warp.sync, shfl, vote, match, redux). With .sync
// it is the beginning of a block, and lanes wait for each other; the forms without are
// ordinary instructions for the active lanes.
type Exchange struct {
	Kind     string // opcode and qualifiers: lanes synchronize if these are equal
	What     Exchanged
	Members  Ref    // the member mask; None without .sync
	Constant bool   // the member mask is Mask in all lanes
	Mask     uint32 // valid if Constant
	S        []Ref  // 32-bit sources
	Wide     Ref    // a 64-bit source instead, or None
	P        *Pred  // the source of a vote
	Reduce   ops.Update
	Alone    bool // Reduce also changes a single value, with itself as the second
	D        Ref  // the 32-bit result, or None
	OK       Ref  // the resulting predicate, or None
}

// Exchanged is the result of an Exchange.
type Exchanged uint8

// The results of exchanges.
const (
	Nothing     Exchanged = iota // a barrier
	ShuffleUp                    // each lane receives the first source of another one, which
	ShuffleDown                  // the second and the third name; the third packs
	ShuffleBfly                  // the clamp and the segment mask
	ShuffleIdx
	Ballot   // all receive the lanes whose predicate is true
	VoteAll  // all receive whether all predicates are true
	VoteAny  // … one of them is true
	VoteSame // … they are equal
	MatchAll // all receive whether they have one value, and all of the lanes if so
	MatchAny // each lane receives the lanes that have its value
	Reduced  // all receive the reduction of all of their values
	Elected  // all receive the lowest lane, and that one a true predicate
)

// NewExchange returns a barrier of the lanes of a warp.
func NewExchange(kind string) *Exchange {
	return &Exchange{Kind: kind, Members: None, Wide: None, D: None, OK: None}
}

// Name implements Op.
func (o *Exchange) Name() string { return o.Kind }

// Registers implements Op.
func (o *Exchange) Registers() (results, sources []Ref) {
	sources = append(registers(o.S...), registers(o.Wide, o.Members)...)
	if o.P != nil {
		sources = append(sources, o.P.Ref())
	}
	return registers(o.D, o.OK), sources
}

// Aligned is an instruction that all lanes of a warp execute together (.aligned): they
// synchronize, and then the warp executes Do. It is always the beginning of a block.
type Aligned struct {
	Exchange
	Do Op
}

// Name implements Op.
func (o *Aligned) Name() string { return o.Do.Name() }

// Registers implements Op.
func (o *Aligned) Registers() (results, sources []Ref) { return o.Do.Registers() }

// Barrier is bar.sync, bar.arrive and bar.red.
type Barrier struct {
	Number   Ref // of the barrier
	Count    Ref // number of threads, if Counted; else Number again
	Counted  bool
	Constant bool // number and count are the same in all lanes
	Arrive   bool // without waiting
	Reduce   Reduction
	D        Ref  // the result of a reduction
	P        Pred // its source
}

// ForAll reports whether the barrier only waits until all threads of a block have
// arrived.
func (o *Barrier) ForAll() bool {
	return o.Constant && !o.Counted && !o.Arrive && o.Reduce == NoReduction
}

// ClusterBarrier is barrier.cluster.arrive, or barrier.cluster.wait.
type ClusterBarrier struct{ Wait bool }

// Name implements Op.
func (o *ClusterBarrier) Name() string {
	if o.Wait {
		return "barrier.cluster.wait"
	}
	return "barrier.cluster.arrive"
}

// Registers implements Op.
func (o *ClusterBarrier) Registers() (results, sources []Ref) { return nil, nil }

// Reduction is the operation of a barrier on the predicates of the threads.
type Reduction uint8

// The reductions.
const (
	NoReduction Reduction = iota
	ReduceAnd
	ReduceOr
	ReduceCount
)

// Name implements Op.
func (o *Barrier) Name() string {
	if o.Arrive {
		return "bar.arrive"
	}
	return [...]string{"bar.sync", "bar.red.and", "bar.red.or", "bar.red.popc"}[o.Reduce]
}

// Registers implements Op.
func (o *Barrier) Registers() (results, sources []Ref) {
	sources = registers(o.Number, o.Count)
	if o.Reduce == NoReduction {
		return nil, sources
	}
	return registers(o.D), append(sources, o.P.Ref())
}
