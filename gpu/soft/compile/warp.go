package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The instructions of a warp (PTX ISA, "Parallel Synchronization").

func (c *compiler) activemask(in *ptx.Inst) ([]ir.Op, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	d, err := c.dest(&in.Args[0], ir.Class32)
	return []ir.Op{&ir.ActiveMask{D: d}}, err
}

// warpOp compiles bar.warp, shfl, vote, match and redux.
func (c *compiler) warpOp(in *ptx.Inst) (*ir.Exchange, error) {
	o := ir.NewExchange(in.Op + "." + strings.Join(in.Mods, "."))
	var err error
	switch in.Op {
	case "bar":
		if !in.Has("sync") {
			err = broken(in, qualifiers(in.Mods), "bar.warp must have the qualifier .sync")
		} else {
			err = operands(in, 1)
		}
	case "shfl":
		err = c.shuffle(o, in)
	case "vote":
		err = c.vote(o, in)
	case "match":
		err = c.match(o, in)
	case "redux":
		err = c.redux(o, in)
	case "elect":
		err = c.elect(o, in)
	default:
		err = missing(in, "opcode %s", in.Op)
	}
	if err != nil || !in.Has("sync") {
		return o, err
	}
	mask := &in.Args[len(in.Args)-1]
	o.Constant, o.Mask = mask.Kind == ptx.KindInt, uint32(mask.Bits)
	o.Members, err = c.source(mask, ir.Class32, ptx.B32)
	return o, err
}

// lockstep compiles the forms without .sync, in which the active lanes take part.
func (c *compiler) lockstep(in *ptx.Inst) ([]ir.Op, error) {
	o, err := c.warpOp(in)
	if err != nil {
		return nil, err
	}
	return []ir.Op{o}, nil
}

// results sets the destinations of the results d|p.
func (c *compiler) results(o *ir.Exchange, d *ptx.Operand) (err error) {
	value, p := *d, ptx.Operand{Kind: ptx.KindSink}
	if d.Kind == ptx.KindPair {
		value, p = d.List[0], d.List[1]
	}
	if o.D, err = c.dest(&value, ir.Class32); err != nil || p.Kind == ptx.KindSink {
		return err
	}
	o.OK, err = c.dest(&p, ir.ClassPred)
	return err
}

var shuffles = map[string]ir.Exchanged{"up": ir.ShuffleUp, "down": ir.ShuffleDown, "bfly": ir.ShuffleBfly, "idx": ir.ShuffleIdx}

// shuffle compiles shfl: the sources are the value, the lane and the clamp.
func (c *compiler) shuffle(o *ir.Exchange, in *ptx.Inst) (err error) {
	want := 4
	if in.Has("sync") {
		want = 5
	}
	if !in.Has("b32") {
		return broken(in, qualifiers(in.Mods), "the type of shfl must be .b32")
	}
	if err := operands(in, want); err != nil {
		return err
	}
	if err := c.results(o, &in.Args[0]); err != nil {
		return err
	}
	o.S = make([]ir.Ref, 3)
	for i := range o.S {
		if o.S[i], err = c.source(&in.Args[i+1], ir.Class32, ptx.B32); err != nil {
			return err
		}
	}
	for _, m := range in.Mods {
		if mode, ok := shuffles[m]; ok {
			o.What = mode
		}
	}
	if o.What == ir.Nothing {
		return broken(in, qualifiers(in.Mods), "shfl must have one of the qualifiers .up, .down, .bfly and .idx")
	}
	return nil
}

func (c *compiler) vote(o *ir.Exchange, in *ptx.Inst) error {
	want := 2
	if in.Has("sync") {
		want = 3
	}
	if err := operands(in, want); err != nil {
		return err
	}
	p, err := c.predSource(&in.Args[1])
	if err != nil {
		return err
	}
	o.P = &p
	if in.Has("ballot") {
		o.What = ir.Ballot
		o.D, err = c.dest(&in.Args[0], ir.Class32)
		return err
	}
	if o.OK, err = c.dest(&in.Args[0], ir.ClassPred); err != nil {
		return err
	}
	switch {
	case in.Has("all"):
		o.What = ir.VoteAll
	case in.Has("any"):
		o.What = ir.VoteAny
	case in.Has("uni"):
		o.What = ir.VoteSame
	default:
		return broken(in, qualifiers(in.Mods), "vote must have one of the qualifiers .all, .any, .uni and .ballot")
	}
	return nil
}

func (c *compiler) match(o *ir.Exchange, in *ptx.Inst) error {
	t, err := c.last(in)
	if err != nil {
		return err
	}
	if !in.Has("sync") || in.Has("all") == in.Has("any") {
		return broken(in, qualifiers(in.Mods), "match must have the qualifier .sync, and either .all or .any")
	}
	if err := operands(in, 3); err != nil {
		return err
	}
	if err := c.results(o, &in.Args[0]); err != nil {
		return err
	}
	src, err := c.source(&in.Args[1], classOf(t), t)
	if err != nil {
		return err
	}
	if src.Class == ir.Class64 {
		o.Wide = src
	} else {
		o.S = []ir.Ref{src}
	}
	if o.What = ir.MatchAny; in.Has("all") {
		o.What = ir.MatchAll
	}
	return nil
}

func (c *compiler) redux(o *ir.Exchange, in *ptx.Inst) error {
	t, err := c.last(in)
	if err != nil {
		return err
	}
	if !in.Has("sync") || len(in.Mods) < 3 {
		return broken(in, qualifiers(in.Mods), "redux must have the qualifier .sync, an operation and a type")
	}
	if t.Size() != 4 {
		return broken(in, "."+t.String(), "the type of redux must have 32 bits")
	}
	if err := operands(in, 3); err != nil {
		return err
	}
	f := reduction(in.Mods[1:len(in.Mods)-1], t)
	if f == nil {
		return missingQualifiers(in, in.Mods[1:])
	}
	if o.D, err = c.dest(&in.Args[0], ir.Class32); err != nil {
		return err
	}
	src, err := c.source(&in.Args[1], ir.Class32, t)
	if err != nil {
		return err
	}
	o.S, o.What, o.Reduce, o.Alone = []ir.Ref{src}, ir.Reduced, f, t == ptx.F32
	return nil
}

// reduction returns the operation of a redux, or nil.
func reduction(mods []string, t ptx.Type) ops.Update {
	op := mods[0]
	if t == ptx.F32 {
		return ops.FloatReduction(op, slices.Contains(mods, "abs"), slices.Contains(mods, "NaN"))
	}
	if len(mods) > 1 || t.Float() || op == "cas" || op == "exch" || op == "inc" || op == "dec" {
		return nil
	}
	return ops.UpdateFor(op, t)
}

// elect compiles elect.sync, which selects a leader of the member lanes.
func (c *compiler) elect(o *ir.Exchange, in *ptx.Inst) error {
	if len(in.Mods) != 1 {
		return broken(in, qualifiers(in.Mods), "elect must have the qualifier .sync and no other")
	}
	if err := operands(in, 2); err != nil {
		return err
	}
	if in.Args[0].Kind != ptx.KindPair {
		return broken(in, kindOf(&in.Args[0]), "the result of elect.sync must be a register and a predicate, d|p")
	}
	o.What = ir.Elected
	return c.results(o, &in.Args[0])
}
