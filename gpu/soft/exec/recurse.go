package exec

import (
	"encoding/binary"
	"fmt"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Limits of functions that call one another dynamically.
const (
	maxStack = 1 << 10   // calls of one lane
	maxSaved = 128 << 20 // bytes of saved frames of one running block
)

// call is one entry of a group's call stack.
type call struct {
	back  int        // basic block to return to
	fn    *ir.Callee // nil for one that is active at most once
	saved bool       // the old content of the frame must be restored
}

// frameKey identifies a location of saved frames, at which each lane has at most one.
type frameKey struct {
	depth int
	fn    *ir.Callee
}

// enter makes a group enter a function that is called dynamically.
func (m *machine) enter(g *group, f *ir.Callee, back int) bool {
	if len(g.stack) >= maxStack {
		m.fault = fmt.Errorf("%w: call of function %s at a depth of %d calls, want less than %d", abi.ErrLaunchFailed, f.Name, len(g.stack), maxStack)
		return false
	}
	again := f.Recursive && slices.ContainsFunc(g.stack, func(c call) bool { return c.fn == f })
	if again {
		if m.fault = m.saveFrame(len(g.stack), f, g.act[:m.warps]); m.fault != nil {
			return false
		}
	}
	if f.Stack > 0 {
		if m.fault = m.push(f, g.act[:m.warps]); m.fault != nil {
			return false
		}
	}
	g.stack = append(g.stack, call{back: back, fn: f, saved: again})
	g.pc = f.Entry
	return true
}

// push allocates a function's variables on the stack of each lane.
func (m *machine) push(f *ir.Callee, act []uint32) error {
	return eachLaneErr(act, func(l int) error {
		at := (uint32(m.get(m.p.StackPointer, l)) + f.Align - 1) &^ (f.Align - 1)
		if f.Stack > m.p.StackTo-min(at, m.p.StackTo) {
			return fmt.Errorf("%w: stack overflow: function %s needs %d bytes at offset %d of the thread's %d", abi.ErrLaunchFailed, f.Name, f.Stack, at-min(at, m.p.StackFrom), m.p.StackTo-m.p.StackFrom)
		}
		m.set(f.Base, l, uint64(at))
		m.set(m.p.StackPointer, l, uint64(at+f.Stack))
		return nil
	})
}

// pop frees the variables.
func (m *machine) pop(f *ir.Callee, act []uint32) {
	eachLane(act, func(l int) { m.set(m.p.StackPointer, l, m.get(f.Base, l)) })
}

// frameWords returns the size in words of a lane's saved frame.
func frameWords(f *ir.Callee) int { return len(f.Regs) + int(f.To-f.From+7)/8 }

func (m *machine) saveFrame(depth int, f *ir.Callee, act []uint32) error {
	key := frameKey{depth, f}
	store := m.saved[key]
	if store == nil {
		n := frameWords(f) * m.lanes
		if m.savedBytes += 8 * n; m.savedBytes > maxSaved {
			return fmt.Errorf("%w: recursion of function %s takes more than the %d MiB of a block", abi.ErrLaunchFailed, f.Name, maxSaved>>20)
		}
		store = make([]uint64, n)
		if m.saved == nil {
			m.saved = map[frameKey][]uint64{}
		}
		m.saved[key] = store
	}
	eachLane(act, func(l int) {
		v := store[l*frameWords(f):][:frameWords(f)]
		for i, r := range f.Regs {
			v[i] = m.get(r, l)
		}
		for i := range v[len(f.Regs):] {
			var b [8]byte
			copy(b[:], m.local[uint32(l)*m.stride+f.From:][8*i:f.To-f.From])
			v[len(f.Regs)+i] = binary.LittleEndian.Uint64(b[:])
		}
	})
	return nil
}

func (m *machine) restoreFrame(depth int, f *ir.Callee, act []uint32) {
	store := m.saved[frameKey{depth, f}]
	eachLane(act, func(l int) {
		v := store[l*frameWords(f):][:frameWords(f)]
		for i, r := range f.Regs {
			m.set(r, l, v[i])
		}
		for i, w := range v[len(f.Regs):] {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], w)
			copy(m.local[uint32(l)*m.stride+f.From:][8*i:f.To-f.From], b[:])
		}
	})
}
