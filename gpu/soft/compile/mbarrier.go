package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// mbarrierForm describes the operands of an operation on an mbarrier.
type mbarrierForm struct {
	what   ir.MBarrierOp
	result ir.Class // ClassNone if there is none
	n      ir.Class // of the last operand
	option bool     // which may be omitted
}

// mbarrierForms has the forms by the significant qualifiers.
var mbarrierForms = map[string]mbarrierForm{
	"init":                   {ir.MBarrierInit, ir.ClassNone, ir.Class32, false},
	"inval":                  {ir.MBarrierInval, ir.ClassNone, ir.ClassNone, false},
	"expect_tx":              {ir.MBarrierExpect, ir.ClassNone, ir.Class32, false},
	"complete_tx":            {ir.MBarrierComplete, ir.ClassNone, ir.Class32, false},
	"arrive":                 {ir.MBarrierArrive, ir.Class64, ir.Class32, true},
	"arrive noComplete":      {ir.MBarrierArrive, ir.Class64, ir.Class32, false},
	"arrive expect_tx":       {ir.MBarrierArriveExpect, ir.Class64, ir.Class32, false},
	"arrive_drop":            {ir.MBarrierDrop, ir.Class64, ir.Class32, true},
	"arrive_drop noComplete": {ir.MBarrierDrop, ir.Class64, ir.Class32, false},
	"arrive_drop expect_tx":  {ir.MBarrierDropExpect, ir.Class64, ir.Class32, false},
	"test_wait":              {ir.MBarrierEnded, ir.ClassPred, ir.Class64, false},
	"test_wait parity":       {ir.MBarrierEndedParity, ir.ClassPred, ir.Class32, false},
	"try_wait":               {ir.MBarrierEnded, ir.ClassPred, ir.Class64, false},
	"try_wait parity":        {ir.MBarrierEndedParity, ir.ClassPred, ir.Class32, false},
}

// sharedSpace reports whether a qualifier names shared memory, of the block or the
// cluster.
func sharedSpace(m string) bool { return m == "shared" || m == "shared::cta" || m == "shared::cluster" }

// mbarrier compiles the instructions of mbarrier objects (PTX ISA, "Parallel
// Synchronization and Communication Instructions: mbarrier").
func (c *compiler) mbarrier(in *ptx.Inst) ([]ir.Op, error) {
	if slices.Equal(in.Mods, []string{"pending_count", "b64"}) && len(in.Args) == 2 {
		return c.pendingCount(in)
	}
	space, words := "", []string{}
	for _, m := range in.Mods {
		switch {
		case sharedSpace(m):
			space = "shared"
		case m == "b64" || listedAny(m, "acquire", "release", "relaxed", "cta", "cluster"):
		default:
			words = append(words, m)
		}
	}
	f, ok := mbarrierForms[strings.Join(words, " ")]
	if !ok {
		return nil, missingQualifiers(in, in.Mods)
	}
	if in.Mods[len(in.Mods)-1] != "b64" {
		return nil, broken(in, qualifiers(in.Mods), "the last qualifier of mbarrier must be .b64")
	}
	return c.mbarrierOn(in, f, space, words[0] == "try_wait")
}

func listedAny(word string, list ...string) bool { return slices.Contains(list, word) }

// mbarrierOn compiles an instruction of a known form. hint means that a time limit of
// the wait may follow.
func (c *compiler) mbarrierOn(in *ptx.Inst, f mbarrierForm, space string, hint bool) ([]ir.Op, error) {
	o := &ir.MBarrier{What: f.what, N: ir.None, D: ir.None}
	args := in.Args
	var err error
	if f.result != ir.ClassNone {
		if len(args) == 0 {
			return nil, fewOperands(in, 0, 1)
		}
		if args[0].Kind != ptx.KindMem { // an arrival may omit its result
			if o.D, err = c.dest(&args[0], f.result); err != nil {
				return nil, err
			}
			args = args[1:]
		}
	}
	if hint && len(args) == 3 {
		args = args[:2]
	}
	want := 2
	if f.n == ir.ClassNone || f.option && len(args) == 1 {
		want = 1
	}
	if f.result == ir.ClassPred && o.D == ir.None {
		return nil, broken(in, kindOf(&in.Args[0]), "the result of %s must be a predicate", nameOf(in))
	}
	if len(args) != want {
		return nil, broken(in, len(args), "%s must have %d operands without its result and time limit", nameOf(in), want)
	}
	if o.Access, err = c.spaceAddress(in, space, &args[0]); err != nil {
		return nil, err
	}
	if want == 2 {
		o.N, err = c.source(&args[1], f.n, map[ir.Class]ptx.Type{ir.Class32: ptx.U32, ir.Class64: ptx.B64}[f.n])
	}
	return []ir.Op{o}, err
}

// pendingCount compiles mbarrier.pending_count, which reads a count from a state
// (ops.MBarrier).
func (c *compiler) pendingCount(in *ptx.Inst) ([]ir.Op, error) {
	s, err := c.source(&in.Args[1], ir.Class64, ptx.B64)
	if err != nil {
		return nil, err
	}
	d, err := c.dest(&in.Args[0], ir.Class32)
	return []ir.Op{&ir.Unpack{D: []ir.Ref{d}, S: s, Each: 20}}, err
}

// copiesArrive compiles cp.async.mbarrier.arrive. The copies before it have been
// executed. Without .noinc an arrival is first added to the pending ones, so nothing
// changes.
func (c *compiler) copiesArrive(in *ptx.Inst) ([]ir.Op, error) {
	space, counts := "", false
	for _, m := range in.Mods[3:] {
		switch {
		case sharedSpace(m):
			space = "shared"
		case m == "noinc":
			counts = true
		case m != "b64":
			return nil, missing(in, "cp.async.mbarrier.arrive with qualifier .%s", m)
		}
	}
	if in.Mods[2] != "arrive" {
		return nil, broken(in, "."+in.Mods[2], "the qualifier after cp.async.mbarrier must be .arrive")
	}
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	a, err := c.spaceAddress(in, space, &in.Args[0])
	if err != nil || !counts {
		return nil, err
	}
	return []ir.Op{&ir.MBarrier{Access: a, What: ir.MBarrierArrive, N: ir.None, D: ir.None}}, nil
}
