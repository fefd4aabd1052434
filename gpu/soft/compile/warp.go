package compile

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The instructions of a warp (PTX ISA, "Parallel Synchronization").

func (c *compiler) activemask(in *ptx.Inst) ([]exec.Step, error) {
	if len(in.Args) != 1 {
		return nil, in.Errorf("wrong number of operands")
	}
	d, err := c.dest(&in.Args[0], exec.Class32)
	return []exec.Step{exec.ActiveMask(d)}, err
}

// warpOp compiles bar.warp, shfl, vote, match and redux.
func (c *compiler) warpOp(in *ptx.Inst) (*exec.WarpOp, error) {
	o := exec.NewWarpOp(in.Op + "." + strings.Join(in.Mods, "."))
	if warpWide[in.Op] != nil {
		return o, c.matrix(o, in)
	}
	var err error
	switch in.Op {
	case "bar":
		if len(in.Args) != 1 || !in.Has("sync") {
			err = in.Errorf("wrong number of operands")
		}
	case "shfl":
		err = c.shuffle(o, in)
	case "vote":
		err = c.vote(o, in)
	case "match":
		err = c.match(o, in)
	case "redux":
		err = c.redux(o, in)
	default:
		err = in.Errorf("unsupported instruction")
	}
	if err != nil || !in.Has("sync") {
		return o, err
	}
	mask := &in.Args[len(in.Args)-1]
	o.Constant, o.Mask = mask.Kind == ptx.KindInt, uint32(mask.Bits)
	o.Members, err = c.source(mask, exec.Class32, ptx.B32)
	return o, err
}

// lockstep compiles the forms without .sync, which take the lanes that are here.
func (c *compiler) lockstep(in *ptx.Inst) ([]exec.Step, error) {
	o, err := c.warpOp(in)
	if err != nil {
		return nil, err
	}
	return []exec.Step{o.Lockstep()}, nil
}

// results sets where the results of d|p go.
func (c *compiler) results(o *exec.WarpOp, d *ptx.Operand) (err error) {
	value, p := *d, ptx.Operand{Kind: ptx.KindSink}
	if d.Kind == ptx.KindPair {
		value, p = d.List[0], d.List[1]
	}
	if o.D, err = c.dest(&value, exec.Class32); err != nil || p.Kind == ptx.KindSink {
		return err
	}
	o.OK, err = c.dest(&p, exec.ClassPred)
	return err
}

// shuffle is shfl: sources are the value, the lane and the clamp.
func (c *compiler) shuffle(o *exec.WarpOp, in *ptx.Inst) (err error) {
	want := 4
	if in.Has("sync") {
		want = 5
	}
	if len(in.Args) != want || !in.Has("b32") {
		return in.Errorf("unsupported instruction")
	}
	if err := c.results(o, &in.Args[0]); err != nil {
		return err
	}
	o.Src = make([]exec.Ref, 3)
	for i := range o.Src {
		if o.Src[i], err = c.source(&in.Args[i+1], exec.Class32, ptx.B32); err != nil {
			return err
		}
	}
	mode := ""
	for _, m := range in.Mods {
		if m == "up" || m == "down" || m == "bfly" || m == "idx" {
			mode = m
		}
	}
	if mode == "" {
		return in.Errorf("unsupported instruction")
	}
	o.Shuffle(mode)
	return nil
}

func (c *compiler) vote(o *exec.WarpOp, in *ptx.Inst) error {
	want := 2
	if in.Has("sync") {
		want = 3
	}
	if len(in.Args) != want {
		return in.Errorf("wrong number of operands")
	}
	p, err := c.predSource(&in.Args[1])
	if err != nil {
		return err
	}
	if in.Has("ballot") {
		o.Ballot(p)
		o.D, err = c.dest(&in.Args[0], exec.Class32)
		return err
	}
	if o.OK, err = c.dest(&in.Args[0], exec.ClassPred); err != nil {
		return err
	}
	switch {
	case in.Has("all"):
		o.VoteAll(p)
	case in.Has("any"):
		o.VoteAny(p)
	case in.Has("uni"):
		o.VoteSame(p)
	default:
		return in.Errorf("unsupported instruction")
	}
	return nil
}

func (c *compiler) match(o *exec.WarpOp, in *ptx.Inst) error {
	t, err := c.last(in)
	if err != nil || len(in.Args) != 3 || !in.Has("sync") || in.Has("all") == in.Has("any") {
		return in.Errorf("unsupported instruction")
	}
	if err := c.results(o, &in.Args[0]); err != nil {
		return err
	}
	src, err := c.source(&in.Args[1], classOf(t), t)
	if err != nil {
		return err
	}
	if src.Class == exec.Class64 {
		o.Wide = src
	} else {
		o.Src = []exec.Ref{src}
	}
	if in.Has("all") {
		o.MatchAll()
	} else {
		o.MatchAny()
	}
	return nil
}

func (c *compiler) redux(o *exec.WarpOp, in *ptx.Inst) error {
	t, err := c.last(in)
	if err != nil || len(in.Args) != 3 || len(in.Mods) != 3 || !in.Has("sync") || t.Size() != 4 || t.Float() {
		return in.Errorf("unsupported instruction")
	}
	f := ops.UpdateFor(in.Mods[1], t)
	if f == nil || in.Mods[1] == "cas" || in.Mods[1] == "exch" || in.Mods[1] == "inc" || in.Mods[1] == "dec" {
		return in.Errorf("unsupported instruction")
	}
	if o.D, err = c.dest(&in.Args[0], exec.Class32); err != nil {
		return err
	}
	src, err := c.source(&in.Args[1], exec.Class32, t)
	if err != nil {
		return err
	}
	o.Src = []exec.Ref{src}
	o.Reduce(f)
	return nil
}
