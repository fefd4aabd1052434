package oracle

import (
	"encoding/binary"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// bytes returns the size bytes of memory that an instruction accesses. The error distinguishes
// a misaligned address from one out of bounds.
func (t *thread) bytes(in *ptx.Inst, mem *ptx.Operand, size uint64) ([]byte, error) {
	space, addr := t.place(in, mem)
	if addr%size != 0 {
		return nil, fmt.Errorf("misaligned: %d bytes at %s address %#x", size, spaceName(space), addr)
	}
	var data []byte
	switch space {
	case "shared":
		data = t.b.shared
	case "local":
		data = t.local
	case "param":
		data = t.b.l.Params
	default:
		return t.b.l.Memory(addr, size)
	}
	if addr > uint64(len(data)) || uint64(len(data))-addr < size {
		return nil, fmt.Errorf("illegal address: %d bytes at %s address %#x, want it in %d bytes", size, spaceName(space), addr, len(data))
	}
	return data[addr : addr+size], nil
}

// spaceName returns the name of a state space in messages.
func spaceName(space string) string {
	if space == "" {
		return "global"
	}
	return space
}

// place returns the state space of a memory operand and the address in it. The name of
// the space is empty for device memory at a generic address.
func (t *thread) place(in *ptx.Inst, mem *ptx.Operand) (space string, addr uint64) {
	addr = uint64(mem.Off)
	for _, m := range in.Mods {
		switch m {
		case "global", "const", "shared", "local", "param":
			space = m
		case "shared::cta", "shared::cluster":
			space = "shared"
		}
	}
	if len(mem.List) > 0 {
		o := &mem.List[0]
		addr += t.val(o, ptx.U64)
		if o.Kind == ptx.KindVar {
			if _, inLocal := t.top().addr[o.Var]; inLocal {
				space = "local"
			} else if space == "" {
				space = o.Var.Space.String()
			}
		}
	}
	if space == "" {
		switch {
		case addr-sharedWindow < window:
			space, addr = "shared", addr-sharedWindow
		case addr-localWindow < window:
			space, addr = "local", addr-localWindow
		}
	}
	switch space {
	case "shared", "local", "param":
		addr = truncate(addr, 4) // the address width of these spaces (PTX ISA, "Addresses as Operands")
	}
	return space, addr
}

func memType(in *ptx.Inst) ptx.Type {
	for _, m := range in.Mods {
		if t, ok := ptx.TypeByName(m); ok {
			return t
		}
	}
	return ptx.NoType
}

func elements(o *ptx.Operand) []ptx.Operand {
	if o.Kind == ptx.KindVec {
		return o.List
	}
	return []ptx.Operand{*o}
}

// readUint returns up to 8 bytes as a little-endian number.
func readUint(b []byte) uint64 {
	var v [8]byte
	copy(v[:], b)
	return binary.LittleEndian.Uint64(v[:])
}

// writeUint stores the low bytes of v in b, little-endian. b has at most 8 bytes.
func writeUint(b []byte, v uint64) {
	var x [8]byte
	binary.LittleEndian.PutUint64(x[:], v)
	copy(b, x[:])
}

// copyAsync executes cp.async. The copy is performed at once, which PTX permits.
func (t *thread) copyAsync(in *ptx.Inst) error {
	if in.Has("bulk") {
		return t.copyBulk(in)
	}
	if in.Has("mbarrier") {
		if in.Has("noinc") {
			return t.mbarrier(&ptx.Inst{Op: "mbarrier", Mods: append([]string{"arrive"}, spaceOf(in)...), Args: in.Args})
		}
		return nil // adds one pending arrival, and that arrives at once
	}
	if len(in.Args) < 3 {
		return nil // commit_group and wait_group
	}
	size := t.val(&in.Args[2], ptx.U32)
	n := size
	if len(in.Args) > 3 {
		last := &in.Args[3]
		if v := t.val(last, ptx.U32); last.Kind == ptx.KindReg && t.top().f.Regs[last.Reg].Type == ptx.Pred {
			n *= 1 - v
		} else {
			n = min(v, size)
		}
	}
	dst, err := t.bytes(&ptx.Inst{Mods: []string{"shared"}}, &in.Args[0], size)
	if err != nil {
		return err
	}
	src, err := t.bytes(&ptx.Inst{Mods: []string{"global"}}, &in.Args[1], size)
	if err != nil {
		return err
	}
	for i := range dst {
		if dst[i] = 0; uint64(i) < n {
			dst[i] = src[i]
		}
	}
	return nil
}

func (t *thread) load(in *ptx.Inst) error {
	ty, list := memType(in), elements(&in.Args[0])
	n := uint64(ty.Size())
	b, err := t.bytes(in, &in.Args[1], n*uint64(len(list)))
	if err != nil {
		return err
	}
	var v []uint64
	for i := range list {
		v = append(v, readUint(b[uint64(i)*n:][:n]))
	}
	for i := range list {
		x := v[i]
		if ty.Signed() {
			x = signExtend(x, ty)
		}
		t.set(&list[i], x)
	}
	return nil
}

func (t *thread) store(in *ptx.Inst) error {
	ty, list := memType(in), elements(&in.Args[1])
	n := uint64(ty.Size())
	b, err := t.bytes(in, &in.Args[0], n*uint64(len(list)))
	if err != nil {
		return err
	}
	for i := range list {
		writeUint(b[uint64(i)*n:][:n], t.val(&list[i], ty))
	}
	if in.Has("async") {
		return t.complete(in, &in.Args[2], uint64(len(b)))
	}
	return nil
}

func (t *thread) atom(in *ptx.Inst) error {
	args := in.Args
	if in.Op == "atom" {
		args = args[1:]
	}
	if args[1].Kind == ptx.KindVec {
		return t.atomVector(in, args)
	}
	ty := memType(in)
	b, err := t.bytes(in, &args[0], uint64(ty.Size()))
	if err != nil {
		return err
	}
	old, x := readUint(b), t.val(&args[1], ty)
	var now uint64
	switch {
	case in.Has("cas"):
		now = old
		if old == x {
			now = t.val(&args[2], ty)
		}
	case in.Has("exch"):
		now = x
	case in.Has("inc"):
		if now = old + 1; old >= x {
			now = 0
		}
	case in.Has("dec"):
		if now = old - 1; old == 0 || old > x {
			now = x
		}
	default:
		op := ""
		for _, m := range in.Mods {
			switch m {
			case "add", "min", "max", "and", "or", "xor":
				op = m
			}
		}
		as := ptx.Inst{Op: op, Mods: []string{ty.String()}}
		if space, _ := t.place(in, &args[0]); ty == ptx.F32 && (space == "" || space == "global") {
			as.Mods = []string{"ftz", "f32"} // .ftz is for device memory only
		}
		if now, err = eval(&as, as.OperandTypes(), []uint64{old, x}, nil); err != nil {
			return err
		}
	}
	writeUint(b, now)
	if in.Op == "atom" {
		t.set(&in.Args[0], old)
	}
	if in.Has("async") {
		return t.complete(in, &in.Args[2], uint64(ty.Size()))
	}
	return nil
}

// copyBulk executes cp.async.bulk and cp.reduce.async.bulk. The copy is performed at
// once.
func (t *thread) copyBulk(in *ptx.Inst) error {
	if len(in.Args) < 3 {
		return nil // commit_group and wait_group
	}
	spaces := spaceOf(in)
	size := t.val(&in.Args[2], ptx.U32)
	ty, update := memType(in), ""
	if in.Has("reduce") {
		for _, m := range in.Mods {
			switch m {
			case "add", "min", "max", "and", "or", "xor", "inc", "dec":
				update = m
			}
		}
	}
	each := uint64(16)
	if update != "" {
		each = uint64(ty.Size())
	}
	for i := uint64(0); i < size; i += each {
		to, from := in.Args[0], in.Args[1]
		to.Off, from.Off = to.Off+int64(i), from.Off+int64(i)
		dst, err := t.bytes(&ptx.Inst{Mods: spaces[:1]}, &to, each)
		if err != nil {
			return err
		}
		src, err := t.bytes(&ptx.Inst{Mods: spaces[1:2]}, &from, each)
		if err != nil {
			return err
		}
		switch update {
		case "":
			copy(dst, src)
		case "inc", "dec":
			old, x := readUint(dst), readUint(src)
			now := old + 1
			if update == "inc" && old >= x {
				now = 0
			}
			if update == "dec" {
				if now = old - 1; old == 0 || old > x {
					now = x
				}
			}
			writeUint(dst, now)
		default:
			as := ptx.Inst{Op: update, Mods: []string{ty.String()}}
			now, err := eval(&as, as.OperandTypes(), []uint64{readUint(dst), readUint(src)}, nil)
			if err != nil {
				return err
			}
			writeUint(dst, now)
		}
	}
	if in.Has("mbarrier::complete_tx::bytes") {
		return t.complete(&ptx.Inst{Mods: []string{"shared"}}, &in.Args[3], size)
	}
	return nil
}

// atomVector executes an atom or red of a vector as one red per element.
func (t *thread) atomVector(in *ptx.Inst, args []ptx.Operand) error {
	var results []uint64
	for i := range args[1].List {
		one, mem := *in, args[0]
		mem.Off += int64(i) * int64(memType(in).Size())
		one.Op, one.Args = "red", []ptx.Operand{mem, args[1].List[i]}
		b, err := t.bytes(in, &mem, uint64(memType(in).Size()))
		if err != nil {
			return err
		}
		results = append(results, readUint(b))
		if err := t.atom(&one); err != nil {
			return err
		}
	}
	for i, v := range results {
		if in.Op == "atom" {
			t.set(&in.Args[0].List[i], v)
		}
	}
	return nil
}
