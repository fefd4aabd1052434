package oracle

import (
	"errors"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// meet lets the threads continue for which all threads that they wait for have arrived.
// released reports whether there was one.
func (b *block) meet() (released bool, err error) {
	for _, t := range b.threads {
		if t.state != waiting {
			continue
		}
		in := t.inst()
		if (in.Op == "bar" || in.Op == "barrier") && !in.Has("warp") {
			if b.barrier(t, in) {
				released = true
			}
			continue
		}
		ok, err := b.warp(t, in)
		if err != nil {
			return false, t.failed(in, err)
		}
		released = released || ok
	}
	return released, nil
}

func (t *thread) pass() { t.top().pc++; t.state = running }

// barrier executes bar.sync, bar.arrive or bar.red for all threads at one barrier, and
// reports whether a thread continues.
func (b *block) barrier(t *thread, in *ptx.Inst) bool {
	args := in.Args
	if in.Has("red") {
		args = args[1 : len(args)-1]
	}
	n := t.val(&args[0], ptx.U32) & 15
	if in.Has("arrive") {
		b.arrived[n] += b.counts(t)
		t.pass()
		return true
	}
	want, live := 0, 0
	if len(args) == 2 {
		want = int(t.val(&args[1], ptx.U32))
	}
	var here []*thread
	come := b.arrived[n]
	for _, o := range b.threads {
		if o.state != ended {
			live++
		}
		if o.state != waiting {
			continue
		}
		oi := o.inst()
		if (oi.Op != "bar" && oi.Op != "barrier") || oi.Has("warp") || oi.Has("arrive") {
			continue
		}
		oa := oi.Args
		if oi.Has("red") {
			oa = oa[1 : len(oa)-1]
		}
		if o.val(&oa[0], ptx.U32)&15 == n {
			here = append(here, o)
			come += b.counts(o)
		}
	}
	if want == 0 {
		want = live
		come = len(here) + b.arrived[n]
	}
	if come < want {
		return false
	}
	b.arrived[n] = 0
	count, red := uint64(0), 0
	for _, o := range here {
		if oi := o.inst(); oi.Has("red") {
			red++
			count += o.val(&oi.Args[len(oi.Args)-1], ptx.Pred)
		}
	}
	for _, o := range here {
		if oi := o.inst(); oi.Has("red") {
			v := count
			if oi.Has("and") {
				v = boolean(count == uint64(red))
			} else if oi.Has("or") {
				v = boolean(count > 0)
			}
			o.set(&oi.Args[0], v)
		}
		o.pass()
	}
	return true
}

// counts returns how many threads a thread counts for at a barrier. Where the barrier
// gives a number of threads and that number is of whole warps, the last thread of a
// partial warp also counts for the threads that the warp lacks (PTX ISA, "bar": the
// arrival of a warp adds the size of a warp).
func (b *block) counts(t *thread) int {
	if want, n := barrierCount(t); n && want%warpSize == 0 && int(t.index) == len(b.threads)-1 {
		return warpSize - int(t.index%warpSize)
	}
	return 1
}

// barrierCount returns the second operand of the barrier at which a thread waits, and
// whether there is one.
func barrierCount(t *thread) (want uint64, given bool) {
	in := t.inst()
	args := in.Args
	if in.Has("red") {
		args = args[1 : len(args)-1]
	}
	if len(args) < 2 {
		return 0, false
	}
	return t.val(&args[1], ptx.U32), true
}

// warp executes a .sync instruction of a warp and reports whether it has: all threads
// of the member mask that have not exited must have reached an instruction with the
// same qualifiers and the same mask, which need not be the same instruction (PTX ISA:
// bar.warp.sync, shfl.sync, vote.sync, match.sync, redux.sync).
func (b *block) warp(t *thread, in *ptx.Inst) (bool, error) {
	mask := t.memberMask()
	if mask>>(t.index%warpSize)&1 == 0 {
		return false, errors.New("the member mask of the thread does not include the thread")
	}
	first := t.index / warpSize * warpSize
	var lanes [warpSize]*thread
	var members uint64
	for i := range uint32(warpSize) {
		if mask>>i&1 == 0 || int(first+i) >= len(b.threads) {
			continue
		}
		o := b.threads[first+i]
		if o.state == ended {
			continue
		}
		if o.state != waiting || !alike(o.inst(), in) || o.memberMask() != mask {
			return false, nil
		}
		lanes[i] = o
		members |= 1 << i
	}
	if warpWide(in.Op) {
		if err := matrix(in, lanes); err != nil {
			return false, err
		}
		for _, o := range lanes {
			o.pass()
		}
		return true, nil
	}
	var d, p [warpSize]uint64
	for i, o := range lanes {
		if o != nil {
			d[i], p[i] = o.exchange(lanes, members)
		}
	}
	for i, o := range lanes {
		if o == nil {
			continue
		}
		if in.Op != "bar" {
			if dst := o.inst().Args[0]; dst.Kind == ptx.KindPair {
				o.set(&dst.List[0], d[i])
				o.set(&dst.List[1], p[i])
			} else {
				o.set(&dst, d[i])
			}
		}
		o.pass()
	}
	return true, nil
}

// alike reports whether two instructions have the same opcode and qualifiers.
func alike(a, b *ptx.Inst) bool { return a.Op == b.Op && slices.Equal(a.Mods, b.Mods) }

// memberMask returns the last operand of the instruction at which a thread waits; all
// lanes for an instruction that a whole warp executes.
func (t *thread) memberMask() uint64 {
	if warpWide(t.inst().Op) {
		return 1<<warpSize - 1
	}
	args := t.inst().Args
	return t.val(&args[len(args)-1], ptx.B32)
}

// firstSource returns the first source of the instruction at which a thread waits.
func (t *thread) firstSource(ty ptx.Type) uint64 { return t.val(&t.inst().Args[1], ty) }

// exchange returns what the thread receives: the value and the predicate.
func (t *thread) exchange(lanes [warpSize]*thread, members uint64) (d, p uint64) {
	in := t.inst()
	switch in.Op {
	case "shfl":
		return t.shuffle(in, lanes)
	case "vote":
		var yes uint64
		for i, o := range lanes {
			if o != nil {
				yes |= o.firstSource(ptx.Pred) << i
			}
		}
		switch {
		case in.Has("ballot"):
			return yes, 0
		case in.Has("all"):
			return boolean(yes == members), 0
		case in.Has("any"):
			return boolean(yes != 0), 0
		}
		return boolean(yes == 0 || yes == members), 0
	case "match":
		var same uint64
		for i, o := range lanes {
			if o != nil && o.firstSource(memType(in)) == t.firstSource(memType(in)) {
				same |= 1 << i
			}
		}
		if in.Has("all") && same != members {
			same = 0
		}
		return same, boolean(same == members)
	case "elect":
		leader := slices.IndexFunc(lanes[:], func(o *thread) bool { return o != nil })
		return uint64(leader), boolean(lanes[leader] == t)
	case "redux":
		if in.Has("f32") {
			return t.reduceFloats(in, lanes), 0
		}
		as := ptx.Inst{Op: in.Mods[1], Mods: in.Mods[2:]}
		first := true
		for _, o := range lanes {
			if o == nil {
				continue
			}
			v := o.firstSource(memType(in))
			if first {
				d, first = v, false
				continue
			}
			d, _ = eval(&as, as.OperandTypes(), []uint64{d, v}, nil)
		}
	}
	return d, 0
}

// shuffle evaluates shfl.sync as its pseudocode in the PTX ISA does.
func (t *thread) shuffle(in *ptx.Inst, lanes [warpSize]*thread) (d, p uint64) {
	lane := int(t.index % warpSize)
	b, c := int(t.val(&in.Args[2], ptx.B32)&31), int(t.val(&in.Args[3], ptx.B32))
	segment := c >> 8 & 31
	maxLane := lane&segment | c&31&^segment
	minLane := lane & segment
	var j int
	var ok bool
	switch {
	case in.Has("up"):
		j = lane - b
		ok = j >= maxLane
	case in.Has("down"):
		j = lane + b
		ok = j <= maxLane
	case in.Has("bfly"):
		j = lane ^ b
		ok = j <= maxLane
	default:
		j = minLane | b&^segment
		ok = j <= maxLane
	}
	if !ok {
		j = lane
	}
	if o := lanes[j]; o != nil {
		d = o.firstSource(ptx.B32)
	} else { // the result is undefined in PTX
		d = t.firstSource(ptx.B32)
	}
	return d, boolean(ok)
}

// reduceFloats returns the smallest or the largest value of the lanes, or of their
// absolute values. A NaN is ignored unless the instruction has .NaN or there is no
// number.
func (t *thread) reduceFloats(in *ptx.Inst, lanes [warpSize]*thread) uint64 {
	best, numbers := nan(), false
	for _, o := range lanes {
		if o == nil {
			continue
		}
		x := decode(o.firstSource(ptx.F32), f32format)
		x.neg = x.neg && !in.Has("abs")
		switch {
		case x.nan && in.Has("NaN"):
			return f32format.nanBits()
		case x.nan:
			continue
		}
		if c := 0; numbers {
			if c = compare(x, best, true); in.Has("max") {
				c = -c
			}
			if c >= 0 {
				continue
			}
		}
		best, numbers = x, true
	}
	return best.encode(f32format, "rn")
}
