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

// oracleMemory is device memory of an oracle launch: a few flat buffers.
type oracleMemory map[uint64][]byte

func (m oracleMemory) bytes(addr, size uint64) ([]byte, error) {
	for base, b := range m {
		if off := addr - base; off < uint64(len(b)) && uint64(len(b))-off >= size {
			return b[off:][:size], nil
		}
	}
	return nil, errors.New("illegal address")
}

// oracleRun runs a kernel of a module on memory with the module's variables.
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

// Every kernel in testdata gives the same bits in the oracle.
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
		if !bytes.Equal(got[i:i+k.elem], want[i:i+k.elem]) {
			t.Fatalf("element %d: %x, the oracle says %x", i/k.elem, got[i:i+k.elem], want[i:i+k.elem])
		}
	}
}

// randThreads are the threads of a random program: a warp, and part of one.
const randThreads = 40

// differ runs one random program on both machines.
func differ(t *testing.T, d worker.Driver, src string, seed int64) {
	t.Helper()
	rnd := rand.New(rand.NewSource(^seed))
	const threads = randThreads
	regs, scratch := make([]byte, threads*randSlots*8), make([]byte, threads*randScratch)
	for i := range threads * randSlots {
		_, ty := randSlot(i % randSlots)
		size := map[string]int{"b16": 2, "b32": 4, "b64": 8, "pred": 1}[ty]
		v := randBits(rnd, size)
		if ty == "pred" {
			v &= 1
		}
		binary.LittleEndian.PutUint64(regs[8*i:], v)
	}
	rnd.Read(scratch)
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
	}()
	_, funcs, info, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{})
	if err != nil {
		t.Fatalf("seed %d: %v %s\n%s", seed, err, info.ErrorLog, src)
	}
	r := &rig{TB: t, c: c, funcs: map[string]worker.Function{"k": funcs[0]}}
	dr, ds := r.buffer(regs), r.buffer(scratch)
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{threads, 1, 1}, 0, dr, ds)
	got, err := r.read(dr, len(regs))
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, src)
	}
	gotScratch, err := r.read(ds, len(scratch))
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(regs)
	oracleRun(t, src, "k", [3]uint32{1, 1, 1}, [3]uint32{threads, 1, 1}, 0, pack(dr, ds), oracleMemory{dr: regs, ds: scratch})
	for i := range threads * randSlots {
		if x, y := got[8*i:8*i+8], regs[8*i:8*i+8]; !bytes.Equal(x, y) {
			name, _ := randSlot(i % randSlots)
			lane := ""
			for j := range randSlots {
				n, _ := randSlot(j)
				lane += fmt.Sprintf("%s=%#x ", n, binary.LittleEndian.Uint64(before[8*(i/randSlots*randSlots+j):]))
			}
			t.Fatalf("seed %d, thread %d, %s: %#x, the oracle says %#x\nstart: %s\n%s", seed, i/randSlots, name,
				binary.LittleEndian.Uint64(x), binary.LittleEndian.Uint64(y), lane, src)
		}
	}
	if !bytes.Equal(gotScratch, scratch) {
		t.Fatalf("seed %d: memory differs\n%s", seed, src)
	}
}

// Every operation of ops.txt agrees with the oracle.
func TestOperationsAgainstOracle(t *testing.T) {
	d, err := device.New(device.Options{VRAM: 64 << 20, SMs: 1, Engine: exec.Compiled})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i, k := range randKeys {
		t.Run(k, func(t *testing.T) {
			g := &randProg{rnd: rand.New(rand.NewSource(int64(i)))}
			differ(t, d, g.program(func() {
				for range 4 {
					g.out.WriteString(g.tabled(k) + ";\n")
				}
			}), int64(i))
		})
	}
}

// FuzzDifferential: interpreter and machine code agree with the oracle bit for bit.
func FuzzDifferential(f *testing.F) {
	n := int64(300)
	if testing.Short() {
		n = 40
	}
	for seed := range n {
		f.Add(seed)
	}
	var engines []worker.Driver
	for _, e := range []exec.Engine{exec.Interpreted, exec.Compiled} {
		d, err := device.New(device.Options{VRAM: 64 << 20, SMs: 1, Engine: e})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() {
			if err := d.Close(); err != nil {
				f.Error(err)
			}
		})
		engines = append(engines, d)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		for _, d := range engines {
			differ(t, d, randomProgram(seed), seed)
		}
	})
}
