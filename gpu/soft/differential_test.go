package soft_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/oracle"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// oracleMemory is the device memory of an oracle launch: a few flat buffers by address.
type oracleMemory map[uint64][]byte

func (m oracleMemory) bytes(addr, size uint64) ([]byte, error) {
	for base, b := range m {
		if off := addr - base; off < uint64(len(b)) && uint64(len(b))-off >= size {
			return b[off:][:size], nil
		}
	}
	return nil, errors.New("illegal address")
}

// oracleRun executes a kernel of a module with the oracle, on memory that includes the
// module's variables.
func oracleRun(t testing.TB, src, name string, grid, block [3]uint32, dynamic uint32, params []byte, mem oracleMemory) {
	t.Helper()
	mod, err := ptx.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	address := map[*ptx.Var]uint64{}
	place := func(v *ptx.Var) {
		if v.Space == ptx.Global || v.Space == ptx.Const {
			b := make([]byte, v.Size)
			copy(b, v.Init)
			address[v] = uint64(len(address)+1) << 32
			mem[address[v]] = b
		}
	}
	for _, v := range mod.Vars {
		place(v)
	}
	for _, f := range mod.Funcs {
		for _, v := range f.Vars {
			place(v)
		}
	}
	for _, f := range mod.Funcs {
		if f.Name != name {
			continue
		}
		l := oracle.Launch{Func: f, Grid: grid, Block: block, Dynamic: dynamic, Params: params, Memory: mem.bytes,
			Address: func(v *ptx.Var) uint64 { return address[v] }}
		if err := l.Run(); err != nil {
			t.Fatalf("oracle: %v", err)
		}
		return
	}
	t.Fatalf("no kernel %s", name)
}

// TestKernelsAgainstOracle checks that every kernel in testdata has the same results as
// in the oracle, bit for bit.
func TestKernelsAgainstOracle(t *testing.T) {
	for name, engine := range map[string]exec.Engine{"interpreted": exec.Interpreted, "compiled": exec.Compiled} {
		for _, k := range slices.Concat(kernelCases, tileCases, partitionCases) {
			t.Run(k.name+"/"+name, func(t *testing.T) { kernelAgainstOracle(t, &k, engine) })
		}
	}
}

func kernelAgainstOracle(t *testing.T, k *kernelCase, engine exec.Engine) {
	r := newRigOf(t, device.Options{VRAM: 256 << 20, SMs: 2, Engine: engine}, kernelFile(t, k.file))
	block, n := 64, 192
	if k.blocks != nil {
		block = k.blocks[len(k.blocks)-1]
		n = 2 * block
	}
	rnd := rand.New(rand.NewSource(7))
	a, b := make([]byte, n*k.elem), make([]byte, n*k.elem)
	rnd.Read(a)
	rnd.Read(b)
	da, db, dc := r.buffer(a), r.buffer(b), r.buffer(make([]byte, n*k.elem))
	args := []any{da, db, dc, n}
	if k.extra != nil {
		args = append(args, k.extra)
	}
	grid := [3]uint32{uint32((n/max(k.per, 1) + block - 1) / block), 1, 1}
	blocks := [3]uint32{uint32(block), 1, 1}
	r.launch(k.name, grid, blocks, uint32(4*block), args...)
	got, err := r.read(dc, n*k.elem)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, n*k.elem)
	oracleRun(t, kernelFile(t, k.file), k.name, grid, blocks, uint32(4*block), pack(args...), oracleMemory{da: a, db: b, dc: want})
	for i := 0; i < len(want); i += k.elem {
		if !bytes.Equal(got[i:i+k.elem], want[i:i+k.elem]) && (card(t) == nil || !bothNaN(k, got[i:], want[i:])) {
			t.Fatalf("element %d = %x, want %x as the oracle", i/k.elem, got[i:i+k.elem], want[i:i+k.elem])
		}
	}
}

// randThreads is the number of threads of a random program: a warp, and part of one.
const randThreads = 40

// randData has the registers and the memory of a random program's threads.
type randData struct {
	blocks, threads int // blocks, and threads of each
	regs, scratch   []byte
}

func newRandData(blocks, each int, seed int64) (v randData) {
	rnd, threads := rand.New(rand.NewSource(^seed)), blocks*each
	v = randData{blocks, each, make([]byte, threads*randSlots*8), make([]byte, threads*randScratch)}
	sizes := map[string]int{"b16": 2, "b32": 4, "b64": 8, "pred": 1}
	for i := range threads * randSlots {
		_, ty := randSlot(i % randSlots)
		x := randBits(rnd, sizes[ty])
		if ty == "pred" {
			x &= 1
		}
		binary.LittleEndian.PutUint64(v.regs[8*i:], x)
	}
	rnd.Read(v.scratch)
	return v
}

// onOracle executes a program on the data with the oracle.
func (v *randData) onOracle(t *testing.T, src string) (after randData) {
	t.Helper()
	const regs, scratch = 1 << 40, 2 << 40
	after = randData{v.blocks, v.threads, bytes.Clone(v.regs), bytes.Clone(v.scratch)}
	oracleRun(t, src, "k", [3]uint32{uint32(v.blocks), 1, 1}, [3]uint32{uint32(v.threads), 1, 1}, 0, pack(uint64(regs), uint64(scratch)), oracleMemory{regs: after.regs, scratch: after.scratch})
	return after
}

// on executes the program that a rig has loaded on the data.
func (v *randData) on(r *rig) (after randData, err error) {
	r.Helper()
	regs, scratch := r.buffer(v.regs), r.buffer(v.scratch)
	r.launch("k", [3]uint32{uint32(v.blocks), 1, 1}, [3]uint32{uint32(v.threads), 1, 1}, 0, regs, scratch)
	if after.regs, err = r.read(regs, len(v.regs)); err == nil {
		after.scratch, err = r.read(scratch, len(v.scratch))
	}
	return after, err
}

// differ executes a program on engines and on the oracle, with the data of some seeds,
// and compares the results.
func differ(t *testing.T, engines []worker.Driver, src string, seeds ...int64) {
	t.Helper()
	differOf(t, engines, 1, randThreads, src, seeds...)
}

// differOf is differ for a number of blocks and of threads of each.
func differOf(t *testing.T, engines []worker.Driver, blocks, threads int, src string, seeds ...int64) {
	t.Helper()
	var rigs []*rig
	for _, d := range engines {
		rigs = append(rigs, loadRandom(t, d, src))
	}
	for _, seed := range seeds {
		before := newRandData(blocks, threads, seed)
		want := before.onOracle(t, src)
		for i, r := range rigs {
			got, err := before.on(r)
			if err != nil {
				t.Fatalf("seed %d, engine %d: %v\n%s", seed, i, err, src)
			}
			if at := firstDifference(got.regs, want.regs); at >= 0 {
				name, _ := randSlot(at / 8 % randSlots)
				thread := at / 8 / randSlots
				t.Fatalf("seed %d, engine %d, thread %d, register %s = %#x, want %#x as the oracle\nstart: %s\n%s", seed, i, thread, name,
					binary.LittleEndian.Uint64(got.regs[at:]), binary.LittleEndian.Uint64(want.regs[at:]), before.text(thread), src)
			}
			if at := firstDifference(got.scratch, want.scratch); at >= 0 {
				t.Fatalf("seed %d, engine %d: byte %d of thread %d's memory = %x, want %x as the oracle, at the start %x\nstart: %s\n%s", seed, i, at%randScratch, at/randScratch,
					got.scratch[at:at+8], want.scratch[at:at+8], before.scratch[at:at+8], before.text(at/randScratch), src)
			}
		}
	}
}

// loadRandom loads a random program into a context that is destroyed after the test.
func loadRandom(t *testing.T, d worker.Driver, src string) *rig {
	t.Helper()
	if card(t) != nil {
		skipNewer(t, d, src)
	}
	c := contextOf(t, d)
	_, funcs, info, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{})
	if err != nil {
		t.Fatalf("load module: %v %s\n%s", err, info.ErrorLog, src)
	}
	return &rig{TB: t, c: c, funcs: map[string]worker.Function{"k": funcs[0]}}
}

// contextOf returns a context that is destroyed after the test.
func contextOf(t testing.TB, d worker.Driver) worker.Context {
	t.Helper()
	if card(t) != nil {
		return onCard(t, d)
	}
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// firstDifference returns the offset of the first 8-byte word that differs, or -1.
func firstDifference(a, b []byte) int {
	for i := 0; i < len(a); i += 8 {
		if !bytes.Equal(a[i:i+8], b[i:i+8]) {
			return i
		}
	}
	return -1
}

// text returns the registers of a thread.
func (v *randData) text(thread int) (s string) {
	for i := range randSlots {
		name, _ := randSlot(i)
		s += fmt.Sprintf("%s=%#x ", name, binary.LittleEndian.Uint64(v.regs[8*(thread*randSlots+i):]))
	}
	return s
}

// TestOperationsAgainstOracle compares every operation of ops.txt with the oracle.
func TestOperationsAgainstOracle(t *testing.T) {
	engines := randEngines(t, exec.Compiled)
	for i, k := range randKeys {
		t.Run(k, func(t *testing.T) {
			if card(t) != nil && approximate(k) {
				t.Skip("approximations are compared by TestApproximationsAgainstOracle")
			}
			g := &randProg{rnd: rand.New(rand.NewSource(int64(i)))}
			differ(t, engines, g.program(func() {
				for range 4 {
					g.out.WriteString(g.tabled(k) + ";\n")
				}
			}), int64(i))
		})
	}
}

// FuzzDifferential compares interpreter and machine code with the oracle, bit for bit.
func FuzzDifferential(f *testing.F) {
	n := int64(300)
	if testing.Short() {
		n = 40
	}
	for seed := range n {
		f.Add(seed)
	}
	engines := randEngines(f, exec.Interpreted, exec.Compiled)
	f.Fuzz(func(t *testing.T, seed int64) {
		if card(t) != nil && openProgram(seed) {
			t.Skip("the results of this program are undefined in PTX")
		}
		differ(t, engines, randomProgram(seed), seed)
	})
}

// randEngines returns devices that are closed after the test.
func randEngines(t testing.TB, kinds ...exec.Engine) (list []worker.Driver) {
	t.Helper()
	if d := card(t); d != nil {
		return []worker.Driver{d}
	}
	for _, e := range kinds {
		d, err := device.New(device.Options{VRAM: 64 << 20, SMs: 1, Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		list = append(list, d)
	}
	return list
}
