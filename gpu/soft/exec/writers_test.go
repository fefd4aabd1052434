package exec

import (
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"math/rand"
	"testing"
)

// TestWriters checks that a warp's store to one address is one store, of the last
// lane's value.
func TestWriters(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	const device = uint64(0x400000000000)
	for n := range 2000 {
		a := access{Access: ir.Access{Space: ir.Global}}
		addrs := make([]uint64, ir.WarpSize)
		for l := range addrs {
			switch addrs[l] = device + 4*uint64(rnd.Intn(1+n%40)); n % 5 {
			case 0:
				addrs[l] = device + 4*uint64(l)
			case 1:
				addrs[l] = device - 4*uint64(l/(1+n%3))
			}
		}
		lanes := rnd.Uint32() | -bitOf(n%2 == 0)
		last := map[uint64]int{}
		for l, x := range addrs {
			if lanes>>l&1 != 0 {
				last[x] = l
			}
		}
		want := uint32(0)
		for _, l := range last {
			want |= 1 << l
		}
		if got := a.writers(addrs, 0, lanes); got != want {
			t.Fatalf("writers of lanes %#x with addresses %#x = %#x, want %#x", lanes, addrs, got, want)
		}
	}
	a := access{Access: ir.Access{Space: ir.Generic, Local: device}}
	if got := a.writers([]uint64{31: 8, 0: 8, 1: 8}, device, 0x80000003); got != 0x80000003 {
		t.Errorf("writers to local memory = %#x, want 0x80000003", got)
	}
}
