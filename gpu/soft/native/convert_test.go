package native

import (
	"math/rand/v2"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// randomConvert returns a conversion that can be in a run.
func randomConvert(r *rand.Rand) *ir.Convert {
	types := []ptx.Type{ptx.U8, ptx.S8, ptx.U16, ptx.S16, ptx.U32, ptx.S32, ptx.U64, ptx.S64, ptx.F32, ptx.F64}
	for {
		to, from := types[r.IntN(len(types))], types[r.IntN(len(types))]
		o := &ir.Convert{F: ops.Conversion{To: to, From: from, Mode: ops.Rounding(r.IntN(4)), FTZ: r.IntN(2) == 0, Sat: r.IntN(2) == 0}}
		o.F.ToInteger = from.Float() && (!to.Float() || r.IntN(2) == 0)
		o.D, o.S = ir.Ref{Slot: r.IntN(testRegs)}, ir.Ref{Slot: r.IntN(testRegs)}
		if to.Size() == 8 {
			o.D.Class = ir.Class64
		}
		if from.Size() == 8 {
			o.S.Class = ir.Class64
		}
		o.Keep = 1<<(8*to.Size()) - 1
		if to.Size() == 8 || r.IntN(3) == 0 && to.Size() != 2 {
			o.Keep = 1<<64 - 1
		}
		if convertible(o) {
			return o
		}
	}
}

// TestConversions compares each conversion with gpu/soft/ops.
func TestConversions(t *testing.T) {
	requireProcessor(t)
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 9))
		o := randomConvert(r)
		check(t, []ir.Inst{{Op: o}}, seed%2 == 0, r)
		if t.Failed() {
			t.Fatalf("seed %d: conversion %s differs from gpu/soft/ops", seed, o.Name())
		}
	}
}
