package ir

import "github.com/basalt-gpu/basalt/gpu/soft/ops"

// Exchange is an instruction that exchanges values between the lanes of a warp
// (PTX ISA, "Parallel Synchronization": bar.warp.sync, shfl, vote, match,
// redux). With .sync a block begins with it, and lanes wait for each other; the
// forms without are ordinary instructions, for the lanes that are there.
type Exchange struct {
	Kind     string // opcode and qualifiers: lanes meet where these are the same
	What     Exchanged
	Members  Ref    // the member mask; None without .sync
	Constant bool   // the member mask is Mask in all lanes
	Mask     uint32 // then
	S        []Ref  // 32-bit sources
	Wide     Ref    // a 64-bit source instead, or None
	P        *Pred  // the source of a vote
	Reduce   ops.Update
	Alone    bool // Reduce changes a value also when it is the only one: of two that are it
	D        Ref  // the 32-bit result, or None
	OK       Ref  // the resulting predicate, or None
}

// Exchanged is what an Exchange computes.
type Exchanged uint8

// What the lanes of a warp may exchange.
const (
	Nothing     Exchanged = iota // a barrier
	ShuffleUp                    // each lane gets the first source of another, which
	ShuffleDown                  // the second and the third name; the third packs
	ShuffleBfly                  // the clamp and the segment mask
	ShuffleIdx
	Ballot   // all get the lanes whose predicate holds
	VoteAll  // all get whether all predicates hold
	VoteAny  // … one of them holds
	VoteSame // … they are the same
	MatchAll // all get whether they have one value, and all of the lanes if so
	MatchAny // each lane gets the lanes that have its value
	Reduced  // all get what Reduce makes of all of their values
	Elected  // all get the lowest lane, and that one a predicate
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

// Aligned is an instruction that all lanes of a warp execute together, at one place
// (.aligned): they meet, and then the warp does something. Only a block begins with it.
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
	Count    Ref // of threads, when Counted; else Number again
	Counted  bool
	Constant bool // number and count are the same in all lanes
	Arrive   bool // without waiting
	Reduce   Reduction
	D        Ref  // the result of a reduction
	P        Pred // its source
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

// Reduction is what a barrier does to the predicates of the threads that come.
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
