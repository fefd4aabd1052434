package soft_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// TestChainsOfMatrices compares products that follow each other with the oracle's. Their
// operands are random registers of few, so that an operand is often that of an earlier
// product, and often one that was written since; loads of tiles are among them. Some
// chains are longer than the longest that is executed at once.
func TestChainsOfMatrices(t *testing.T) {
	if card(t) != nil {
		t.Skip("sums of a GPU are rounded in another order, and some are operands here")
	}
	for _, vectors := range []bool{true, false} {
		t.Run(fmt.Sprintf("vectors=%v", vectors), func(t *testing.T) {
			before := exec.UseVectors(vectors)
			defer exec.UseVectors(before)
			for seed := range 12 {
				rnd := rand.New(rand.NewSource(int64(seed)))
				threads := 32 << (seed % 3)
				againstOracleOf(t, threads, "f32", lanesKernel(false, 8, 4, 8, 8, chain(rnd, []int{3, 12, 80}[seed/4])), matrixData(rnd, threads*20, "f16", seed%2 == 1), threads*8*8)
			}
		})
	}
}

// chain returns n random matrix instructions, which end with products in %d.
func chain(rnd *rand.Rand, n int) string {
	var s strings.Builder
	s.WriteString("mov.u32 %sa, sh; mad.lo.u32 %sa, %thread, 16, %sa; st.shared.v4.b32 [%sa], {%a0, %b0, %a1, %b1}; bar.warp.sync -1;\n")
	for i := range 8 {
		fmt.Fprintf(&s, "mov.b32 %%d%d, %%c%d;\n", i, i)
	}
	// Operands of A, B, and of C and D: mostly the same, aligned ones.
	pick := func(n int) string {
		pool := []string{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "b0", "b1", "b2", "b3"}
		at := 4 * rnd.Intn(3)
		if rnd.Intn(4) == 0 {
			at = rnd.Intn(len(pool) - n + 1)
		}
		return "{%" + strings.Join(pool[at:at+n], ", %") + "}"
	}
	sums := func() string {
		at := 4 * rnd.Intn(2)
		list := []string{"%d0", "%d1", "%d2", "%d3", "%d4", "%d5", "%d6", "%d7"}[at : at+4]
		if rnd.Intn(5) == 0 {
			rnd.Shuffle(4, func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	for range n {
		switch rnd.Intn(8) {
		case 0:
			fmt.Fprintf(&s, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 %s, [%%sa];\n", pick(2))
		case 1: // D is an A or a B
			fmt.Fprintf(&s, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 %s, %s, %s, %s;\n", pick(4), pick(4), pick(2), sums())
		default:
			fmt.Fprintf(&s, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 %s, %s, %s, %s;\n", sums(), pick(4), pick(2), sums())
		}
	}
	return s.String()
}

// TestChainFails checks that an error in a chain names the instruction that has failed.
func TestChainFails(t *testing.T) {
	if card(t) != nil {
		t.Skip("a GPU names no instruction")
	}
	src := lanesKernel(false, 8, 0, 0, 1, "mov.u32 %sa, sh;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%sa];\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%sa+16384];\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%sa];\n")
	r := newRig(t, src)
	out := r.buffer(make([]byte, 64*8))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{64, 1, 1}, 0, r.buffer(make([]byte, 64*64)), out)
	_, err := r.read(out, 8)
	if err == nil || !strings.Contains(err.Error(), "[%sa+16384]") {
		t.Errorf("error = %v, want one that names the ldmatrix at %%sa+16384", err)
	}
}
