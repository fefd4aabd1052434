package ir

import "strings"

// Shapes are the shapes of a program's registers, found optimistically and
// without regard to order: a register has the shape that all of its definitions
// have if their sources have theirs. It holds for the lanes of a tile that have
// taken one path since these were defined, which is for whoever uses it to see
// to: lanes that went apart meet again with values of different definitions, or
// of different rounds of a loop. A register that is Invariant needs no such care.
type Shapes struct {
	p         *Program
	at        [3][]Shape // by class and slot
	writers   [3][]int32 // how many instructions write it
	invariant [3][]bool
}

// FindShapes finds the shapes of a program's registers. linear says that the
// lanes of a tile have consecutive %tid.x, and one %tid.y and %tid.z.
func FindShapes(p *Program, linear bool) *Shapes {
	s := &Shapes{p: p}
	for c, n := range [3]int{p.Regs32, p.Regs64, p.Preds} {
		s.at[c], s.writers[c], s.invariant[c] = make([]Shape, n), make([]int32, n), make([]bool, n)
	}
	s.fixed(linear)
	p.each(func(o Op, _ *Pred) {
		results, _ := o.Registers()
		for _, r := range results {
			s.writers[r.Class][r.Slot]++
		}
	})
	for again := true; again; {
		again = s.round()
	}
	s.findInvariant()
	return s
}

// Of returns a register's shape; that of one that nothing defines is Varying.
func (s *Shapes) Of(r Ref) Shape {
	if v := s.at[r.Class][r.Slot]; v.Kind != Unset {
		return v
	}
	return varying
}

// Invariant reports whether a register has the same value in a lane whenever the
// lane has defined it: it depends only on where the lane is and on the kernel's
// parameters.
func (s *Shapes) Invariant(r Ref) bool { return s.invariant[r.Class][r.Slot] }

// fixed sets the registers that no instruction writes.
func (s *Shapes) fixed(linear bool) {
	set := func(r Ref, v Shape) { s.at[r.Class][r.Slot], s.invariant[r.Class][r.Slot] = v, true }
	for slot := range s.p.Const32 {
		set(Ref{Class32, slot}, uniform)
	}
	for slot := range s.p.Const64 {
		set(Ref{Class64, slot}, uniform)
	}
	for name, slot := range s.p.Specials {
		set(Ref{Class32, slot}, specialShape(name, linear))
	}
}

func specialShape(name string, linear bool) Shape {
	switch {
	case name == "%laneid" || name == "%tid.x" && linear:
		return affine(1, Class32)
	case strings.HasPrefix(name, "%tid.") && !linear, strings.HasPrefix(name, "%lanemask"):
		return varying
	}
	return uniform
}

// round looks at each instruction once and reports whether a shape has changed.
func (s *Shapes) round() (changed bool) {
	s.p.each(func(o Op, guard *Pred) { changed = s.define(o, guard) || changed })
	return changed
}

// each visits all operations with their guards.
func (p *Program) each(f func(o Op, guard *Pred)) {
	for i := range p.Blocks {
		b := &p.Blocks[i]
		if b.Sync != nil {
			f(b.Sync, nil)
		}
		for j := range b.Insts {
			f(b.Insts[j].Op, b.Insts[j].Guard)
		}
	}
}

// define joins the shapes of an operation's results to those they have.
func (s *Shapes) define(o Op, guard *Pred) (changed bool) {
	results, sources := o.Registers()
	if guard != nil {
		sources = append(sources, guard.Ref())
	}
	for _, r := range sources {
		if s.at[r.Class][r.Slot].Kind == Unset && s.writers[r.Class][r.Slot] > 0 {
			return false // until one of its definitions has been looked at
		}
	}
	for _, r := range results {
		v := s.result(o, r)
		if guard != nil && s.Of(guard.Ref()).Kind != Uniform {
			v = varying
		}
		old := &s.at[r.Class][r.Slot]
		if v = old.join(v); v != *old {
			*old, changed = v, true
		}
	}
	return changed
}

// findInvariant finds the registers that are written by one instruction without
// a guard, of invariant sources.
func (s *Shapes) findInvariant() {
	for again := true; again; {
		again = false
		s.p.each(func(o Op, guard *Pred) {
			results, sources := o.Registers()
			if guard != nil || len(results) != 1 || s.writers[results[0].Class][results[0].Slot] != 1 || s.Invariant(results[0]) || !repeatable(o) {
				return
			}
			for _, r := range sources {
				if !s.Invariant(r) {
					return
				}
			}
			s.invariant[results[0].Class][results[0].Slot], again = true, true
		})
	}
}

// repeatable reports whether an operation gives the same for the same sources.
func repeatable(o Op) bool {
	switch o := o.(type) {
	case *Arith, *Pack, *Logic, *Select, *Convert:
		return true
	case *Load:
		return o.Space == Param && o.Fixed && o.N == 1
	}
	return false
}
