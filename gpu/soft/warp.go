package soft

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// What warp instructions compute (PTX ISA, "Parallel Synchronization"). Who
// takes part is the business of warpOp.

func (c *compiler) activemask(in *ptx.Inst) ([]step, error) {
	if len(in.Args) != 1 {
		return nil, in.Errorf("wrong number of operands")
	}
	d, err := c.dest(&in.Args[0], class32)
	return []step{{masked: func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { m.set(d, l, uint64(act[l>>5])) })
		return nil
	}}}, err
}

// results sets where the results of d|p go.
func (c *compiler) results(o *warpOp, d *ptx.Operand) (err error) {
	value, p := *d, ptx.Operand{Kind: ptx.KindSink}
	if d.Kind == ptx.KindPair {
		value, p = d.List[0], d.List[1]
	}
	if o.dst, err = c.dest(&value, class32); err != nil || p.Kind == ptx.KindSink {
		return err
	}
	o.ok, err = c.dest(&p, classPred)
	return err
}

// shuffle is PTX ISA, shfl.sync: c packs the clamp and the segment mask. A
// source lane that does not take part has no defined value in PTX; here the
// lane keeps its own.
func (c *compiler) shuffle(o *warpOp, in *ptx.Inst) (err error) {
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
	o.src = make([]ref, 3)
	for i := range o.src {
		if o.src[i], err = c.source(&in.Args[i+1], class32, ptx.B32); err != nil {
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
	o.combine = func(x *exchange) {
		a, bs, cs := x.src[0][:warpSize], x.src[1][:warpSize], x.src[2][:warpSize]
		valid, partly := uint32(0), x.lanes != ^uint32(0)
		for l := range uint32(warpSize) {
			from, ok := shuffleSource(mode, l, bs[l]&31, cs[l])
			if partly && x.lanes>>from&1 == 0 {
				from = l
			}
			x.d[l] = a[from]
			valid |= bit(ok) << l
		}
		x.p = valid
	}
	return nil
}

func shuffleSource(mode string, lane, b, c uint32) (from uint32, ok bool) {
	clamp, seg := c&31, c>>8&31
	last := lane&seg | clamp&^seg
	first := lane & seg
	var j uint32
	switch mode {
	case "up":
		j = lane - b
		ok = int32(j) >= int32(last)
	case "down":
		j = lane + b
		ok = j <= last
	case "bfly":
		j = lane ^ b
		ok = j <= last
	default:
		j = first | b&^seg
		ok = j <= last
	}
	if !ok {
		j = lane
	}
	return j & 31, ok
}

func (c *compiler) vote(o *warpOp, in *ptx.Inst) (err error) {
	want := 2
	if in.Has("sync") {
		want = 3
	}
	if len(in.Args) != want {
		return in.Errorf("wrong number of operands")
	}
	if o.pred, o.not, err = c.predSource(&in.Args[1]); err != nil {
		return err
	}
	if in.Has("ballot") {
		o.uniform, o.combine = true, func(x *exchange) { x.all = x.yes & x.lanes }
		o.dst, err = c.dest(&in.Args[0], class32)
		return err
	}
	if o.ok, err = c.dest(&in.Args[0], classPred); err != nil {
		return err
	}
	switch {
	case in.Has("all"):
		o.combine = func(x *exchange) { x.p = -bit(x.lanes&^x.yes == 0) }
	case in.Has("any"):
		o.combine = func(x *exchange) { x.p = -bit(x.lanes&x.yes != 0) }
	case in.Has("uni"):
		o.combine = func(x *exchange) { x.p = -bit(x.lanes&x.yes == 0 || x.lanes&^x.yes == 0) }
	default:
		return in.Errorf("unsupported instruction")
	}
	return nil
}

func (c *compiler) match(o *warpOp, in *ptx.Inst) error {
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
	alike := func(x *exchange, lanes uint32) uint32 {
		return having(x.src[0], lanes, x.src[0][bits.TrailingZeros32(lanes)])
	}
	if o.src = []ref{src}; src.class == class64 {
		o.src, o.wide = nil, src
		alike = func(x *exchange, lanes uint32) uint32 {
			return having(x.wide, lanes, x.wide[bits.TrailingZeros32(lanes)])
		}
	}
	if in.Has("all") {
		o.uniform, o.combine = true, func(x *exchange) {
			x.p = -bit(alike(x, x.lanes) == x.lanes)
			x.all = x.lanes & x.p
		}
		return nil
	}
	o.combine = func(x *exchange) {
		for rest := x.lanes; rest != 0; {
			same := alike(x, rest)
			rest &^= same
			for a := same; a != 0; a &= a - 1 {
				x.d[bits.TrailingZeros32(a)] = same
			}
		}
	}
	return nil
}

func (c *compiler) redux(o *warpOp, in *ptx.Inst) error {
	t, err := c.last(in)
	if err != nil || len(in.Args) != 3 || len(in.Mods) != 3 || !in.Has("sync") || t.Size() != 4 || t.Float() {
		return in.Errorf("unsupported instruction")
	}
	f := updateFor(in.Mods[1], t)
	if f == nil || in.Mods[1] == "cas" || in.Mods[1] == "exch" || in.Mods[1] == "inc" || in.Mods[1] == "dec" {
		return in.Errorf("unsupported instruction")
	}
	if o.dst, err = c.dest(&in.Args[0], class32); err != nil {
		return err
	}
	src, err := c.source(&in.Args[1], class32, t)
	if err != nil {
		return err
	}
	o.src, o.uniform = []ref{src}, true
	o.combine = func(x *exchange) {
		acc := uint64(x.src[0][bits.TrailingZeros32(x.lanes)])
		for a := x.lanes & (x.lanes - 1); a != 0; a &= a - 1 {
			acc = uint64(uint32(f(acc, uint64(x.src[0][bits.TrailingZeros32(a)]), 0)))
		}
		x.all = uint32(acc)
	}
	return nil
}
