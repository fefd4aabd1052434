package oracle

import "github.com/basalt-gpu/basalt/gpu/ptx"

// The layouts of the operands of mma, by shape (PTX ISA, "Matrix Fragments for mma").

func pick(c bool, a, b int) int {
	if c {
		return a
	}
	return b
}

// ofA has the layouts of A by shape and element width.
var ofA = map[string]layout{
	"m16n8k8/16": func(l, i int) (int, int) { return l>>2 + pick(i < 2, 0, 8), l%4*2 + i&1 },
	"m16n8k16/16": func(l, i int) (int, int) {
		return l>>2 + pick(i < 2 || i >= 4 && i < 6, 0, 8), l%4*2 + i&1 + pick(i < 4, 0, 8)
	},
	"m16n8k4/32": func(l, i int) (int, int) { return l>>2 + pick(i == 0, 0, 8), l % 4 },
	"m16n8k8/32": func(l, i int) (int, int) { return l>>2 + pick(i == 0 || i == 2, 0, 8), l%4 + pick(i < 2, 0, 4) },
	"m8n8k16/8":  func(l, i int) (int, int) { return l >> 2, l%4*4 + i },
	"m16n8k16/8": func(l, i int) (int, int) { return l>>2 + pick(i < 4, 0, 8), l%4*4 + i&3 },
	"m16n8k32/8": func(l, i int) (int, int) {
		return l>>2 + pick(i < 4 || i >= 8 && i < 12, 0, 8), l%4*4 + i&3 + pick(i < 8, 0, 16)
	},
	"m8n8k32/4":  func(l, i int) (int, int) { return l >> 2, l%4*8 + i },
	"m16n8k32/4": func(l, i int) (int, int) { return l>>2 + pick(i < 8, 0, 8), l%4*8 + i&7 },
	"m16n8k64/4": func(l, i int) (int, int) {
		return l>>2 + pick(i < 8 || i >= 16 && i < 24, 0, 8), l%4*8 + i&7 + pick(i < 16, 0, 32)
	},
	"m8n8k128/1":  func(l, i int) (int, int) { return l >> 2, l%4*32 + i },
	"m16n8k128/1": func(l, i int) (int, int) { return l>>2 + pick(i < 32, 0, 8), l%4*32 + i&31 },
	"m16n8k256/1": func(l, i int) (int, int) {
		return l>>2 + pick(i < 32 || i >= 64 && i < 96, 0, 8), l%4*32 + i&31 + pick(i < 64, 0, 128)
	},
	"m8n8k4/64":    func(l, _ int) (int, int) { return l >> 2, l % 4 },
	"m16n8k4/64":   func(l, i int) (int, int) { return l>>2 + pick(i == 0, 0, 8), l % 4 },
	"m16n8k8/64":   func(l, i int) (int, int) { return l>>2 + pick(i == 0 || i == 2, 0, 8), l%4 + pick(i < 2, 0, 4) },
	"m16n8k16/64":  func(l, i int) (int, int) { return l>>2 + pick(i%2 == 0, 0, 8), pick(i%2 == 0, i*2, i*2-2) + l%4 },
	"m8n8k4/16row": func(l, i int) (int, int) { return quad(l)*8 + l%4 + pick(l < 16, 0, 4), i },
	"m8n8k4/16col": func(l, i int) (int, int) { return quad(l)*8 + i%4 + pick(l < 16, 0, 4), l % 4 },
}

// ofB has the layouts of B by shape and element width.
var ofB = map[string]layout{
	"m16n8k8/16":   func(l, i int) (int, int) { return l%4*2 + i, l >> 2 },
	"m16n8k16/16":  func(l, i int) (int, int) { return l%4*2 + i&1 + pick(i < 2, 0, 8), l >> 2 },
	"m16n8k4/32":   func(l, _ int) (int, int) { return l % 4, l >> 2 },
	"m16n8k8/32":   func(l, i int) (int, int) { return l%4 + pick(i == 0, 0, 4), l >> 2 },
	"m8n8k16/8":    func(l, i int) (int, int) { return l%4*4 + i, l >> 2 },
	"m16n8k16/8":   func(l, i int) (int, int) { return l%4*4 + i, l >> 2 },
	"m16n8k32/8":   func(l, i int) (int, int) { return l%4*4 + i&3 + pick(i < 4, 0, 16), l >> 2 },
	"m8n8k32/4":    func(l, i int) (int, int) { return l%4*8 + i, l >> 2 },
	"m16n8k32/4":   func(l, i int) (int, int) { return l%4*8 + i, l >> 2 },
	"m16n8k64/4":   func(l, i int) (int, int) { return l%4*8 + i&7 + pick(i < 8, 0, 32), l >> 2 },
	"m8n8k128/1":   func(l, i int) (int, int) { return l%4*32 + i, l >> 2 },
	"m16n8k128/1":  func(l, i int) (int, int) { return l%4*32 + i, l >> 2 },
	"m16n8k256/1":  func(l, i int) (int, int) { return l%4*32 + i&31 + pick(i < 32, 0, 128), l >> 2 },
	"m8n8k4/64":    func(l, _ int) (int, int) { return l % 4, l >> 2 },
	"m16n8k4/64":   func(l, _ int) (int, int) { return l % 4, l >> 2 },
	"m16n8k8/64":   func(l, i int) (int, int) { return l%4 + pick(i == 0, 0, 4), l >> 2 },
	"m16n8k16/64":  func(l, i int) (int, int) { return l%4 + i*4, l >> 2 },
	"m8n8k4/16row": func(l, i int) (int, int) { return quad(l)*4 + l%4, i + pick(l < 16, 0, 4) },
	"m8n8k4/16col": func(l, i int) (int, int) { return quad(l)*4 + i, l%4 + pick(l < 16, 0, 4) },
}

// quad returns which of the four products of m8n8k4 a lane takes part in. The rows of
// their matrices follow each other.
func quad(lane int) int { return lane % 16 / 4 }

// ofC returns the layout of C and D.
func ofC(shape, typ string, fourProducts bool) layout {
	switch {
	case fourProducts && typ == "f16":
		return func(l, i int) (int, int) { return quad(l)*8 + l%4 + pick(l < 16, 0, 4), i }
	case fourProducts:
		return func(l, i int) (int, int) {
			return quad(l)*8 + l&1 + i&2 + pick(l < 16, 0, 4), i&4 + l&2 + i&1
		}
	case shape[:2] == "m8":
		return func(l, i int) (int, int) { return l >> 2, l%4*2 + i }
	}
	return func(l, i int) (int, int) { return l>>2 + pick(i < 2, 0, 8), l%4*2 + i&1 }
}

// mmaOperands returns D, A, B and C of an mma. at is nil where the shape has no layout
// for the type.
func mmaOperands(in *ptx.Inst) (o [4]operand) {
	name, _, _, _ := shape(in)
	types := matrixTypes(in)
	four := name == "m8n8k4" && types[1] == "f16"
	key := func(i int, typ string) string {
		k := name + "/" + map[uint]string{1: "1", 4: "4", 8: "8", 16: "16", 32: "32", 64: "64"}[widths[typ]]
		if four {
			n := 0
			for _, q := range in.Mods {
				if q == "row" || q == "col" {
					if n++; n == i {
						k += q
					}
				}
			}
		}
		return k
	}
	return [4]operand{
		{types[0], ofC(name, types[0], four)}, {types[1], ofA[key(1, types[1])]}, {types[2], ofB[key(2, types[2])]}, {types[3], ofC(name, types[3], four)},
	}
}

// linear returns the layout of wmma's matrices in the oracle's threads, which PTX
// leaves open: row by row, repeated until the registers are full.
func linear(rows, cols int) layout {
	return func(l, i int) (int, int) {
		at := (l + warpSize*i) % (rows * cols)
		return at / cols, at % cols
	}
}

// wmmaOperands returns D, A, B and C of a wmma.mma.
func wmmaOperands(in *ptx.Inst) [4]operand {
	_, m, n, k := shape(in)
	t := matrixTypes(in)
	if len(t) == 2 {
		t = []string{t[0], "f16", "f16", t[1]}
	}
	return [4]operand{{t[0], linear(m, n)}, {t[1], linear(m, k)}, {t[2], linear(k, n)}, {t[3], linear(m, n)}}
}
