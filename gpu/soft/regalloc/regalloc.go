// Package regalloc assigns physical registers to the values of straight-line code.
//
// It processes the instructions once and keeps values in registers. When it needs a
// register and none is free, it frees that whose value is used again last, or never,
// which in code without branches results in the fewest loads (Belady 1966). Values that
// lose their register are stored in slots: those that begin or end outside of the code
// in a slot of their own, others in shared slots.
package regalloc

import (
	"fmt"
	"math"
	"slices"
)

// Reg is a physical register of a class.
type Reg uint8

// Class is a kind of registers, an index of Code.Registers.
type Class uint8

// ID names a value, an index of Code.Values. A value may be written more than once.
type ID int

// Value is a value of the code. If it is written, the old content of its slot is lost,
// whether Out is set or not.
type Value struct {
	Class Class
	Slot  int  // its own slot outside of the code, or NoSlot
	In    bool // it is in its slot at the start, unless it is written first
	Out   bool // it must be in its slot at the end, if it is written
}

// NoSlot is the Slot of a value that begins and ends in the code.
const NoSlot = -1

// Inst has the values of an instruction.
type Inst struct {
	Uses, Defs []ID
	// Tied: the first use and the first def must be in one register, as in instructions
	// that replace an operand by the result.
	Tied bool
	// Early: a def is written while uses are still read, so that a register cannot be
	// both, except for the tied pair.
	Early bool
	Temps []Class // registers that it overwrites
}

// Code is the input of Allocate.
type Code struct {
	Registers [][]Reg // the registers that may be assigned, by class
	Values    []Value
	Insts     []Inst
	FirstFree int // the first slot for values that lose their register
}

// Kind is the kind of a step.
type Kind uint8

// The kinds of steps.
const (
	Exec  Kind = iota // instruction Inst with the registers Uses, Defs and Temps
	Load              // from Slot to To
	Store             // from From to Slot
	Move              // from From to To
)

// Step is a part of the output. Its registers have one class unless it is Exec.
type Step struct {
	Kind              Kind
	Class             Class
	Inst              int
	To, From          Reg
	Slot              int
	Uses, Defs, Temps []Reg
}

// never is the next use of a value that is not used again.
const never = math.MaxInt

// Allocate returns the steps that execute the code, and the number of slots beyond
// FirstFree that they use. It returns an error if one instruction needs more registers
// than there are.
func Allocate(c *Code) (steps []Step, slots int, err error) {
	a := &allocator{code: c, values: make([]state, len(c.Values)), files: make([][]*entry, len(c.Registers))}
	for class, regs := range c.Registers {
		for _, r := range regs {
			a.files[class] = append(a.files[class], &entry{reg: r, value: free})
		}
	}
	for i, v := range c.Values {
		a.values[i] = state{slot: v.Slot, stored: v.In}
	}
	next := nextUses(c)
	for i := range c.Insts {
		if err := a.inst(i, next[i]); err != nil {
			return nil, 0, err
		}
	}
	a.finish()
	return a.steps, a.slots, nil
}

// uses has the next use of each value of an instruction after it.
type uses struct{ uses, defs []int }

// nextUses processes the code backward. A value that must be in its slot at the end is
// used there.
func nextUses(c *Code) []uses {
	at := make([]int, len(c.Values))
	for i, v := range c.Values {
		at[i] = never
		if v.Out {
			at[i] = len(c.Insts)
		}
	}
	next := make([]uses, len(c.Insts))
	for i := len(c.Insts) - 1; i >= 0; i-- {
		in := &c.Insts[i]
		for _, d := range in.Defs {
			next[i].defs = append(next[i].defs, at[d])
		}
		for _, d := range in.Defs {
			at[d] = never
		}
		for _, u := range in.Uses {
			next[i].uses = append(next[i].uses, at[u])
		}
		for _, u := range in.Uses {
			at[u] = i
		}
	}
	return next
}

// free is the value of a register that has none.
const free ID = -1

// entry is a physical register with its value.
type entry struct {
	reg    Reg
	value  ID
	pinned bool // by the current instruction
}

// state is the location of a value.
type state struct {
	in     *entry // or nil
	stored bool   // its slot contains it
	slot   int
	next   int // index of the next use
}

type allocator struct {
	code   *Code
	values []state
	files  [][]*entry
	steps  []Step
	slots  int
	spare  []int // slots whose values are not used again
}

func (a *allocator) inst(i int, next uses) error {
	in := &a.code.Insts[i]
	step := Step{Kind: Exec, Inst: i}
	var pins []*entry
	pin := func(e *entry) Reg {
		e.pinned = true
		pins = append(pins, e)
		return e.reg
	}
	defer func() {
		for _, e := range pins {
			e.pinned = false
		}
	}()
	for _, u := range in.Uses { // values in registers first, so that they are not evicted
		if e := a.values[u].in; e != nil {
			pin(e)
		}
	}
	for n, u := range in.Uses {
		e, err := a.load(i, u)
		if err != nil {
			return err
		}
		a.values[u].next = next.uses[n]
		step.Uses = append(step.Uses, pin(e))
	}
	tied, err := a.tie(i, pin)
	if err != nil {
		return err
	}
	if tied != nil {
		step.Uses[0] = tied.reg
	}
	for _, class := range in.Temps {
		e, err := a.allocate(i, class)
		if err != nil {
			return err
		}
		step.Temps = append(step.Temps, pin(e))
	}
	if !in.Early {
		a.unpinDead(in, tied)
	}
	if step.Defs, err = a.defs(i, next.defs, tied, pin); err != nil {
		return err
	}
	a.steps = append(a.steps, step)
	for _, u := range in.Uses {
		a.release(u)
	}
	for _, d := range in.Defs {
		a.release(d)
	}
	return nil
}

// load returns the register of a value, after a load if it needs one.
func (a *allocator) load(i int, v ID) (*entry, error) {
	s := &a.values[v]
	if s.in != nil {
		return s.in, nil
	}
	if !s.stored {
		return nil, fmt.Errorf("instruction %d: value %d is used and was never written", i, v)
	}
	class := a.code.Values[v].Class
	e, err := a.allocate(i, class)
	if err != nil {
		return nil, err
	}
	a.bind(e, v)
	a.steps = append(a.steps, Step{Kind: Load, Class: class, To: e.reg, Slot: s.slot})
	return e, nil
}

func (a *allocator) bind(e *entry, v ID) { e.value, a.values[v].in = v, e }

// tie returns the register that an instruction replaces: that of its first use if the
// value is not used again, else a copy of it. It returns nil if none is tied.
func (a *allocator) tie(i int, pin func(*entry) Reg) (*entry, error) {
	in := &a.code.Insts[i]
	if !in.Tied {
		return nil, nil
	}
	first := in.Uses[0]
	s := &a.values[first]
	if s.next == never && (!in.Early || !slices.Contains(in.Uses[1:], first)) {
		e := s.in
		e.value, s.in = free, nil
		return e, nil
	}
	class := a.code.Values[in.Defs[0]].Class
	e, err := a.allocate(i, class)
	if err != nil {
		return nil, err
	}
	pin(e)
	a.steps = append(a.steps, Step{Kind: Move, Class: class, To: e.reg, From: s.in.reg})
	return e, nil
}

// unpinDead allows defs to be in the registers of uses that are not used again.
func (a *allocator) unpinDead(in *Inst, tied *entry) {
	for _, u := range in.Uses {
		if s := &a.values[u]; s.next == never && s.in != nil && s.in != tied {
			e := s.in
			e.pinned, e.value, s.in = false, free, nil
		}
	}
}

// defs assigns registers to the results.
func (a *allocator) defs(i int, next []int, tied *entry, pin func(*entry) Reg) (regs []Reg, err error) {
	for n, d := range a.code.Insts[i].Defs {
		s := &a.values[d]
		e := tied
		if n > 0 || tied == nil {
			if e, err = a.allocate(i, a.code.Values[d].Class); err != nil {
				return nil, err
			}
		}
		if s.in != nil { // the old value
			s.in.value = free
		}
		a.bind(e, d)
		s.stored, s.next = false, next[n]
		regs = append(regs, pin(e))
	}
	return regs, nil
}

// allocate returns a register without a value, after a store if it needs one.
func (a *allocator) allocate(i int, class Class) (*entry, error) {
	var best *entry
	for _, e := range a.files[class] {
		switch {
		case e.pinned:
		case e.value == free:
			return e, nil
		case best == nil || a.values[e.value].next > a.values[best.value].next:
			best = e
		}
	}
	if best == nil {
		return nil, fmt.Errorf("instruction %d needs more than the %d registers of class %d", i, len(a.files[class]), class)
	}
	a.save(best)
	a.values[best.value].in, best.value = nil, free
	return best, nil
}

// save stores the value of a register to its slot, if it is used again and not stored
// there.
func (a *allocator) save(e *entry) {
	s := &a.values[e.value]
	if s.stored || s.next == never {
		return
	}
	if s.slot == NoSlot {
		s.slot = a.slot()
	}
	s.stored = true
	a.steps = append(a.steps, Step{Kind: Store, Class: a.code.Values[e.value].Class, From: e.reg, Slot: s.slot})
}

func (a *allocator) slot() int {
	if n := len(a.spare); n > 0 {
		s := a.spare[n-1]
		a.spare = a.spare[:n-1]
		return s
	}
	a.slots++
	return a.code.FirstFree + a.slots - 1
}

// release frees the register and the slot of a value that is not used again.
func (a *allocator) release(v ID) {
	s := &a.values[v]
	if s.next != never {
		return
	}
	if s.in != nil {
		s.in.value, s.in = free, nil
	}
	if s.slot != NoSlot && a.code.Values[v].Slot == NoSlot {
		a.spare = append(a.spare, s.slot)
		s.slot, s.stored = NoSlot, false
	}
}

// finish stores the values that must be in their slots.
func (a *allocator) finish() {
	for _, file := range a.files {
		for _, e := range file {
			if e.value != free {
				a.save(e)
			}
		}
	}
}
