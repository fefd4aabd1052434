package regalloc

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var seed = maphash.MakeSeed()

// result returns the value that instruction i computes for its def n.
func result(i, n int, in []uint64) uint64 { return maphash.String(seed, fmt.Sprint(i, n, in)) }

// garbage is the content of a register or slot that must not be read.
const garbage = 0xdead

// before interprets the code. It returns the slots at its end of values that are Out or
// not written.
func before(c *Code, slots map[int]uint64) map[int]uint64 {
	slots = maps.Clone(slots)
	values := map[ID]uint64{}
	for i, v := range c.Values {
		if v.In {
			values[ID(i)] = slots[v.Slot]
		}
	}
	written := map[ID]bool{}
	for i, in := range c.Insts {
		var args []uint64
		for _, u := range in.Uses {
			args = append(args, values[u])
		}
		for n, d := range in.Defs {
			values[d], written[d] = result(i, n, args), true
		}
	}
	for i, v := range c.Values {
		switch {
		case v.Out && written[ID(i)]:
			slots[v.Slot] = values[ID(i)]
		case written[ID(i)]:
			delete(slots, v.Slot)
		}
	}
	return slots
}

// file names a register.
type file struct {
	class Class
	reg   Reg
}

// after interprets the steps.
func after(c *Code, steps []Step, slots map[int]uint64) map[int]uint64 {
	slots = maps.Clone(slots)
	regs := map[file]uint64{}
	for _, s := range steps {
		switch s.Kind {
		case Load:
			regs[file{s.Class, s.To}] = slots[s.Slot]
		case Store:
			slots[s.Slot] = regs[file{s.Class, s.From}]
		case Move:
			regs[file{s.Class, s.To}] = regs[file{s.Class, s.From}]
		case Exec:
			execute(c, &s, regs)
		}
	}
	return slots
}

func execute(c *Code, s *Step, regs map[file]uint64) {
	in := &c.Insts[s.Inst]
	class := func(v ID) Class { return c.Values[v].Class }
	for n, t := range s.Temps {
		regs[file{in.Temps[n], t}] = garbage
	}
	for n, d := range s.Defs {
		if in.Early && (n > 0 || !in.Tied) {
			regs[file{class(in.Defs[n]), d}] = garbage
		}
	}
	var args []uint64
	for n, u := range s.Uses {
		args = append(args, regs[file{class(in.Uses[n]), u}])
	}
	if in.Tied && s.Uses[0] != s.Defs[0] {
		args = append(args, garbage)
	}
	for n, d := range s.Defs {
		regs[file{class(in.Defs[n]), d}] = result(s.Inst, n, args)
	}
}

// random returns code that uses only values that have been written.
func random(r *rand.Rand) *Code {
	c := &Code{Registers: make([][]Reg, 2), FirstFree: 1000}
	for class := range c.Registers {
		for i := range 7 + r.IntN(10) {
			c.Registers[class] = append(c.Registers[class], Reg(3*i+class))
		}
	}
	var known [2][]ID
	for i := range ID(4 + r.IntN(50)) {
		v := Value{Class: Class(r.IntN(2)), Slot: NoSlot, In: i < 4 || r.IntN(4) == 0, Out: r.IntN(4) == 0}
		if i < 2 {
			v.Class = Class(i)
		}
		if v.In || v.Out {
			v.Slot = int(i)
		}
		if v.In {
			known[v.Class] = append(known[v.Class], i)
		}
		c.Values = append(c.Values, v)
	}
	for range r.IntN(120) {
		in := Inst{Early: r.IntN(3) == 0}
		for range r.IntN(4) {
			k := known[r.IntN(2)]
			in.Uses = append(in.Uses, k[r.IntN(len(k))])
		}
		for _, d := range r.Perm(len(c.Values))[:min(r.IntN(3), len(c.Values))] {
			in.Defs = append(in.Defs, ID(d))
		}
		for range r.IntN(3) {
			in.Temps = append(in.Temps, Class(r.IntN(2)))
		}
		in.Tied = len(in.Uses) > 0 && len(in.Defs) > 0 && c.Values[in.Uses[0]].Class == c.Values[in.Defs[0]].Class && r.IntN(2) == 0
		for _, d := range in.Defs {
			known[c.Values[d].Class] = append(known[c.Values[d].Class], d)
		}
		c.Insts = append(c.Insts, in)
	}
	return c
}

func TestRandomCode(t *testing.T) {
	stores := 0
	for n := range uint64(5000) {
		c := random(rand.New(rand.NewPCG(n, 1)))
		slots := map[int]uint64{}
		for i := range c.Values {
			slots[i] = uint64(i) + 1e6
		}
		steps, spilled, err := Allocate(c)
		if err != nil {
			t.Fatalf("seed %d: Allocate: %v", n, err)
		}
		stores += spilled
		want, got := before(c, slots), after(c, steps, slots)
		for i := range c.Values {
			if w, ok := want[i]; ok && got[i] != w {
				t.Fatalf("seed %d: slot %d = %#x, want %#x\n%+v\n%+v", n, i, got[i], w, c, steps)
			}
		}
		for s := range got {
			if s >= len(c.Values) && (s < c.FirstFree || s >= c.FirstFree+spilled) {
				t.Fatalf("seed %d: slot %d is used, want only those of values and the %[4]d from %[3]d on", n, s, c.FirstFree, spilled)
			}
		}
	}
	if stores == 0 {
		t.Error("no step stores a value that lost its register, want some")
	}
}

func TestLeavesOutWhatNobodyNeeds(t *testing.T) {
	in, out := Value{Slot: 0, In: true}, Value{Slot: 1, Out: true}
	c := &Code{
		Registers: [][]Reg{{0, 1, 2}},
		Values:    []Value{in, out, {Slot: NoSlot}},
		Insts: []Inst{
			{Uses: []ID{0}, Defs: []ID{2}, Tied: true},
			{Uses: []ID{2, 2}, Defs: []ID{1}, Tied: true},
			{Uses: []ID{1}, Defs: []ID{1}, Tied: true},
		},
	}
	steps, slots, err := Allocate(c)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []Kind
	for _, s := range steps {
		kinds = append(kinds, s.Kind)
	}
	if want := []Kind{Load, Exec, Exec, Exec, Store}; !slices.Equal(kinds, want) || slots != 0 {
		t.Errorf("steps = %v with %d slots, want %v with none", kinds, slots, want)
	}
}

func TestRefused(t *testing.T) {
	for want, c := range map[string]*Code{
		"never written": {Registers: [][]Reg{{0}}, Values: []Value{{Slot: NoSlot}}, Insts: []Inst{{Uses: []ID{0}}}},
		"more than the 1 registers": {
			Registers: [][]Reg{{0}}, Values: []Value{{Slot: 0, In: true}, {Slot: 1, In: true}}, Insts: []Inst{{Uses: []ID{0, 1}}}},
	} {
		if _, _, err := Allocate(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error of Allocate = %v, want one with %q", err, want)
		}
	}
}
