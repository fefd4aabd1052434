package soft

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Warp-synchronous instructions. act has the lanes that take part; groups have
// been made to wait for each other by syncInst.

// lockstep compiles the forms without .sync, which take the lanes that are here.
func (c *compiler) lockstep(in *ptx.Inst) ([]step, error) {
	f, err := c.warpOp(in)
	if err != nil {
		return nil, err
	}
	return []step{{masked: func(m *machine, act []uint32) error { f(m, act); return nil }}}, nil
}

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

// warpOp is what shfl, vote, match and redux do.
func (c *compiler) warpOp(in *ptx.Inst) (func(m *machine, act []uint32), error) {
	switch in.Op {
	case "shfl":
		return c.shuffle(in)
	case "vote":
		return c.vote(in)
	case "match":
		return c.match(in)
	case "redux":
		return c.redux(in)
	}
	return nil, in.Errorf("unsupported instruction")
}

// shuffle is PTX ISA, shfl.sync: c packs the clamp and the segment mask.
func (c *compiler) shuffle(in *ptx.Inst) (func(m *machine, act []uint32), error) {
	want := 4
	if in.Has("sync") {
		want = 5
	}
	if len(in.Args) != want || !in.Has("b32") {
		return nil, in.Errorf("unsupported instruction")
	}
	d, p := in.Args[0], ptx.Operand{Kind: ptx.KindSink}
	if d.Kind == ptx.KindPair {
		d, p = d.List[0], d.List[1]
	}
	rd, err := c.dest(&d, class32)
	if err != nil {
		return nil, err
	}
	rp, err := c.dest(&p, classPred)
	if err != nil {
		return nil, err
	}
	var src [3]ref
	for i := range src {
		if src[i], err = c.source(&in.Args[i+1], class32, ptx.B32); err != nil {
			return nil, err
		}
	}
	mode := ""
	for _, m := range in.Mods {
		if m == "up" || m == "down" || m == "bfly" || m == "idx" {
			mode = m
		}
	}
	if mode == "" {
		return nil, in.Errorf("unsupported instruction")
	}
	return func(m *machine, act []uint32) {
		var old [warpSize]uint32
		for w, a := range act {
			if a == 0 {
				continue
			}
			copy(old[:], m.v32(src[0].slot, w, w+1))
			bs, cs := m.v32(src[1].slot, w, w+1), m.v32(src[2].slot, w, w+1)
			out := m.v32(rd.slot, w, w+1)
			var res [warpSize]uint32
			var valid uint32
			for l := range uint32(warpSize) {
				from, ok := shuffleSource(mode, l, bs[l]&31, cs[l])
				res[l] = old[from]
				valid |= bit(ok) << l
			}
			for l := range out {
				if a>>l&1 != 0 {
					out[l] = res[l]
				}
			}
			pr := m.pred(rp.slot, w, w+1)
			pr[0] = pr[0]&^a | valid&a
		}
	}, nil
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

func (c *compiler) vote(in *ptx.Inst) (func(m *machine, act []uint32), error) {
	want := 2
	if in.Has("sync") {
		want = 3
	}
	if len(in.Args) != want {
		return nil, in.Errorf("wrong number of operands")
	}
	ballot := in.Has("ballot")
	cl := classPred
	if ballot {
		cl = class32
	}
	d, err := c.dest(&in.Args[0], cl)
	if err != nil {
		return nil, err
	}
	p, not, err := c.predSource(&in.Args[1])
	if err != nil {
		return nil, err
	}
	var f func(yes, a uint32) bool
	switch {
	case ballot:
	case in.Has("all"):
		f = func(yes, a uint32) bool { return yes == a }
	case in.Has("any"):
		f = func(yes, _ uint32) bool { return yes != 0 }
	case in.Has("uni"):
		f = func(yes, a uint32) bool { return yes == a || yes == 0 }
	default:
		return nil, in.Errorf("unsupported instruction")
	}
	return func(m *machine, act []uint32) {
		for w, a := range act {
			if a == 0 {
				continue
			}
			yes := (m.pred(p, w, w+1)[0] ^ not) & a
			if ballot {
				out := m.v32(d.slot, w, w+1)
				for l := range out {
					if a>>l&1 != 0 {
						out[l] = yes
					}
				}
				continue
			}
			pr := m.pred(d.slot, w, w+1)
			pr[0] = pr[0]&^a | -bit(f(yes, a))&a
		}
	}, nil
}

func (c *compiler) match(in *ptx.Inst) (func(m *machine, act []uint32), error) {
	t, err := c.last(in)
	if err != nil || len(in.Args) != 3 || !in.Has("sync") {
		return nil, in.Errorf("unsupported instruction")
	}
	d, p := in.Args[0], ptx.Operand{Kind: ptx.KindSink}
	if d.Kind == ptx.KindPair {
		d, p = d.List[0], d.List[1]
	}
	rd, err := c.dest(&d, class32)
	if err != nil {
		return nil, err
	}
	rp, err := c.dest(&p, classPred)
	if err != nil {
		return nil, err
	}
	src, err := c.source(&in.Args[1], classOf(t), t)
	if err != nil {
		return nil, err
	}
	all := in.Has("all")
	return func(m *machine, act []uint32) {
		for w, a := range act {
			var res [warpSize]uint32
			for x := a; x != 0; x &= x - 1 {
				l := bits.TrailingZeros32(x)
				for y := a; y != 0; y &= y - 1 {
					k := bits.TrailingZeros32(y)
					if m.get(src, w*warpSize+l) == m.get(src, w*warpSize+k) {
						res[l] |= 1 << k
					}
				}
			}
			for x := a; x != 0; x &= x - 1 {
				l := bits.TrailingZeros32(x)
				v := res[l]
				if all && v != a {
					v = 0
				}
				m.set(rd, w*warpSize+l, uint64(v))
				m.set(rp, w*warpSize+l, uint64(bit(v == a)))
			}
		}
	}, nil
}

func (c *compiler) redux(in *ptx.Inst) (func(m *machine, act []uint32), error) {
	t, err := c.last(in)
	if err != nil || len(in.Args) != 3 || len(in.Mods) != 3 || t.Size() != 4 || t.Float() {
		return nil, in.Errorf("unsupported instruction")
	}
	f := updateFor(in.Mods[1], t)
	if f == nil || in.Mods[1] == "cas" || in.Mods[1] == "exch" || in.Mods[1] == "inc" || in.Mods[1] == "dec" {
		return nil, in.Errorf("unsupported instruction")
	}
	d, err := c.dest(&in.Args[0], class32)
	if err != nil {
		return nil, err
	}
	src, err := c.source(&in.Args[1], class32, t)
	return func(m *machine, act []uint32) {
		for w, a := range act {
			if a == 0 {
				continue
			}
			v := m.v32(src.slot, w, w+1)
			acc, first := uint64(0), true
			for x := a; x != 0; x &= x - 1 {
				b := uint64(v[bits.TrailingZeros32(x)])
				if first {
					acc, first = b, false
				} else {
					acc = uint64(uint32(f(acc, b, 0)))
				}
			}
			out := m.v32(d.slot, w, w+1)
			for x := a; x != 0; x &= x - 1 {
				out[bits.TrailingZeros32(x)] = uint32(acc)
			}
		}
	}, err
}
