package exec

import (
	"encoding/binary"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// The steps that copy arguments and results of calls.

func copyLocal(o *ir.CopyLocal) step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) {
			mem := m.local[uint32(l)*m.stride:][:m.stride]
			copy(mem[o.To:o.To+o.Size], mem[o.From:o.From+o.Size])
		})
		return nil
	})
}

func copyWord(o *ir.CopyWord) step {
	to, from := word{o.To}, word{o.From}
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { to.set(m, l, from.get(m, l)) })
		return nil
	})
}

// word is a value of each lane, in a register or in local memory.
type word struct{ ir.Word }

func (w word) get(m *machine, lane int) uint64 {
	if w.Reg.Class != ir.ClassNone {
		return m.get(w.Reg, lane)
	}
	b := m.local[uint32(lane)*m.stride+w.Local:]
	if w.Half {
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func (w word) set(m *machine, lane int, v uint64) {
	if w.Reg.Class != ir.ClassNone {
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
