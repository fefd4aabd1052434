package exec

import "encoding/binary"

// Steps that carry arguments and results of calls.

// CopyReg returns the step that copies a register lane by lane.
func CopyReg(to, from Ref) Step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { m.set(to, l, m.get(from, l)) })
		return nil
	})
}

// CopyLocal returns the step that copies inside each lane's local memory.
func CopyLocal(to, from, size uint32) Step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) {
			mem := m.local[uint32(l)*m.stride:][:m.stride]
			copy(mem[to:to+size], mem[from:from+size])
		})
		return nil
	})
}

// Word is a value of each lane, of 64 bits or, when Half, of 32: a register, or a
// place in local memory when the register is of ClassNone.
type Word struct {
	Reg   Ref
	Local uint32
	Half  bool
}

func (w Word) get(m *machine, lane int) uint64 {
	if w.Reg.Class != ClassNone {
		return m.get(w.Reg, lane)
	}
	b := m.local[uint32(lane)*m.stride+w.Local:]
	if w.Half {
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func (w Word) set(m *machine, lane int, v uint64) {
	if w.Reg.Class != ClassNone {
		m.set(w.Reg, lane, v)
		return
	}
	b := m.local[uint32(lane)*m.stride+w.Local:]
	if w.Half {
		binary.LittleEndian.PutUint32(b, uint32(v))
		return
	}
	binary.LittleEndian.PutUint64(b, v)
}

// CopyWord returns the step that copies between a register and local memory.
func CopyWord(to, from Word) Step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { to.set(m, l, from.get(m, l)) })
		return nil
	})
}
