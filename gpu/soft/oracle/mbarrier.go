package oracle

import (
	"errors"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// phases is an mbarrier object. The oracle stores it apart from shared memory, by the
// address of its first byte, as the content of the object is opaque to programs.
type phases struct {
	phase                 uint64
	expected, pending, tx int64
}

// end begins the next phase if no arrival and no byte is pending.
func (p *phases) end() {
	if p.pending == 0 && p.tx == 0 {
		p.phase, p.pending = p.phase+1, p.expected
	}
}

// state returns the result of an arrival: the phase, and the pending count before it.
func (p *phases) state() uint64 { return p.phase<<32 | uint64(p.pending) }

// mbarrier executes the mbarrier instructions (PTX ISA, "mbarrier").
func (t *thread) mbarrier(in *ptx.Inst) error {
	if in.Has("pending_count") {
		t.set(&in.Args[0], truncate(t.val(&in.Args[1], ptx.B64), 4))
		return nil
	}
	mem := slices.IndexFunc(in.Args, func(o ptx.Operand) bool { return o.Kind == ptx.KindMem })
	b, err := t.bytes(&ptx.Inst{Mods: spaceOf(in)}, &in.Args[mem], 8)
	if err != nil {
		return err
	}
	n := uint64(1)
	if len(in.Args) > mem+1 {
		ty := ptx.U32
		if in.Has("test_wait") && !in.Has("parity") || in.Has("try_wait") && !in.Has("parity") {
			ty = ptx.U64
		}
		n = t.val(&in.Args[mem+1], ty)
	}
	if in.Has("init") {
		t.b.barriers[&b[0]] = &phases{expected: int64(n), pending: int64(n)}
		return nil
	}
	p := t.b.barriers[&b[0]]
	if p == nil {
		return errors.New("the address is not that of an mbarrier object: want one that mbarrier.init has made")
	}
	switch {
	case in.Has("inval"):
		delete(t.b.barriers, &b[0])
	case in.Has("test_wait"), in.Has("try_wait"):
		ended := n>>32 != p.phase
		if in.Has("parity") {
			ended = n != p.phase&1
		}
		t.set(&in.Args[0], boolean(ended))
	case in.Has("arrive"), in.Has("arrive_drop"):
		t.arrive(in, p, n, mem)
	case in.Has("expect_tx"):
		p.tx += int64(n)
	case in.Has("complete_tx"):
		p.tx -= int64(n)
		p.end()
	}
	return nil
}

// complete performs complete-tx with the bytes of a copy on the mbarrier at an address,
// which is in the state space that the instruction names.
func (t *thread) complete(in *ptx.Inst, mem *ptx.Operand, bytes uint64) error {
	b, err := t.bytes(&ptx.Inst{Mods: spaceOf(in)}, mem, 8)
	if err != nil {
		return err
	}
	p := t.b.barriers[&b[0]]
	if p == nil {
		return errors.New("the address is not that of an mbarrier object: want one that mbarrier.init has made")
	}
	p.tx -= int64(bytes)
	p.end()
	return nil
}

func (t *thread) arrive(in *ptx.Inst, p *phases, n uint64, mem int) {
	if mem > 0 {
		t.set(&in.Args[0], p.state())
	}
	if in.Has("expect_tx") {
		p.tx += int64(n)
		n = 1
	}
	p.pending -= int64(n)
	if in.Has("arrive_drop") {
		p.expected -= int64(n)
	}
	p.end()
}
