// Package regalloc gives physical registers to the values of straight-line code.
//
// It walks the instructions once, keeps what is in registers, and when it needs
// one that is not free takes that whose value is used again last, or never, which
// in code without branches loads the least (Belady 1966). Values that lose their
// register live in slots: those that begin or end outside of the code in a slot of
// their own, others in slots that are shared.
package regalloc

import (
	"fmt"
	"math"
	"slices"
)

// Reg is a physical register of one class.
type Reg uint8

// Class is a kind of registers, an index of Code.Registers.
type Class uint8

// ID names a value, an index of Code.Values. It may be written more than once.
type ID int

// Value is what the code computes with. One that is written loses what its slot
// had, Out or not.
type Value struct {
	Class Class
	Slot  int  // where it lives outside of the code, which is no other's, or NoSlot
	In    bool // it is in its slot at the start, unless written first
	Out   bool // it must be in its slot at the end, if it is written
}

// NoSlot is the Slot of a value that begins and ends in the code.
const NoSlot = -1

// Inst is what an instruction does with values.
type Inst struct {
	Uses, Defs []ID
	// Tied: the first use and the first def are one register, as in the
	// instructions that replace an operand by the result.
	Tied bool
	// Early: a def is written while uses are still read, so that no register is
	// both, but for the tied pair.
	Early bool
	Temps []Class // registers that it overwrites besides
}

// Code is the input.
type Code struct {
	Registers [][]Reg // those that may be given, of each class
	Values    []Value
	Insts     []Inst
	FirstFree int // slots from here on are for values that lose their register
}

// Kind is what a step does.
type Kind uint8

// The kinds of steps.
const (
	Exec  Kind = iota // instruction Inst with the registers Uses, Defs and Temps
	Load              // from Slot to To
	Store             // from From to Slot
	Move              // from From to To
)

// Step is a part of the output, of registers of one class unless it is Exec.
type Step struct {
	Kind              Kind
	Class             Class
	Inst              int
	To, From          Reg
	Slot              int
	Uses, Defs, Temps []Reg
}

// never is the next use of what is not used again.
const never = math.MaxInt

// Allocate returns the steps that do what the code does, and the number of slots
// beyond FirstFree that they use. It fails where one instruction needs more
// registers than there are.
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

// uses is when the values of an instruction are used next after it.
type uses struct{ uses, defs []int }

// nextUses reads the code backward. A value that must be in its slot at the end
// is used there.
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

// free is the value of a register without one.
const free ID = -1

// entry is a physical register.
type entry struct {
	reg    Reg
	value  ID
	pinned bool // by the instruction in work
}

// state is where a value is.
type state struct {
	in     *entry // or nil
	stored bool   // its slot has it
	slot   int
	next   int // use
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
	for _, u := range in.Uses { // those that are there first, lest they give way to others
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
		e, err := a.take(i, class)
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
	e, err := a.take(i, class)
	if err != nil {
		return nil, err
	}
	a.bind(e, v)
	a.steps = append(a.steps, Step{Kind: Load, Class: class, To: e.reg, Slot: s.slot})
	return e, nil
}

func (a *allocator) bind(e *entry, v ID) { e.value, a.values[v].in = v, e }

// tie returns the register that an instruction replaces: that of its first use
// if nothing needs its value any more, else a copy of it. nil: none is tied.
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
	e, err := a.take(i, class)
	if err != nil {
		return nil, err
	}
	pin(e)
	a.steps = append(a.steps, Step{Kind: Move, Class: class, To: e.reg, From: s.in.reg})
	return e, nil
}

// unpinDead lets defs have the registers of uses that are not used again.
func (a *allocator) unpinDead(in *Inst, tied *entry) {
	for _, u := range in.Uses {
		if s := &a.values[u]; s.next == never && s.in != nil && s.in != tied {
			e := s.in
			e.pinned, e.value, s.in = false, free, nil
		}
	}
}

// defs gives the results registers.
func (a *allocator) defs(i int, next []int, tied *entry, pin func(*entry) Reg) (regs []Reg, err error) {
	for n, d := range a.code.Insts[i].Defs {
		s := &a.values[d]
		e := tied
		if n > 0 || tied == nil {
			if e, err = a.take(i, a.code.Values[d].Class); err != nil {
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

// take returns a register without a value, after a store if it needs one.
func (a *allocator) take(i int, class Class) (*entry, error) {
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

// save stores the value of a register in its slot, if it is used again and not
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

// release forgets a value that is not used again.
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

// finish stores the results.
func (a *allocator) finish() {
	for _, file := range a.files {
		for _, e := range file {
			if e.value != free {
				a.save(e)
			}
		}
	}
}
