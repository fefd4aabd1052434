//go:build linux && amd64

package amd64

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// load loads one function that emit writes.
func load(t testing.TB, emit func(a *Assembler)) Function {
	t.Helper()
	if !Available() {
		t.Skip("this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
	var a Assembler
	emit(&a)
	f, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.Function(0)
}

// spoil overwrites the registers that generated code may use: all but RSP, RBP, R14 and
// R15.
func spoil(a *Assembler) {
	for r := RAX; r <= R13; r++ {
		if r != RSP && r != RBP && r != RDI {
			a.Emit(MOV, Q(r), Imm(0x5a5a5a5a5a5a))
		}
	}
	for r := range Reg(16) {
		a.Emit(VPCMPEQD, Y(r), Y(r), Y(r))
	}
	a.Emit(MOV, Q(RDI), Imm(-1))
}

// busy counts down the turns in the context's first word, and overwrites all registers.
func busy(a *Assembler) {
	a.Emit(MOV, Q(RCX), Mem(RDI, 0))
	turn := a.Label()
	a.Bind(turn)
	a.Emit(ADD, Mem(RDI, 8).Size(8), Imm(1))
	a.Emit(SUB, Q(RCX), Imm(1))
	a.JumpIf(CondNE, turn)
	a.Emit(MOV, Q(RAX), Mem(RDI, 8))
	a.Emit(MOV, Q(RBX), Q(RAX))
	spoil(a)
	a.Emit(MOV, Q(RAX), Imm(77))
	a.Emit(RET)
}

type busyContext struct{ turns, done uint64 }

func TestCall(t *testing.T) {
	f := load(t, busy)
	c := &busyContext{turns: 1000}
	if got := f.Call(unsafe.Pointer(c)); got != 77 || c.done != 1000 {
		t.Errorf("Call = %d after %d turns, want 77 after 1000", got, c.done)
	}
	if z := zeros(); slices.Max(z[:]) != 0 {
		t.Errorf("memory that Go clears with X15 = %x after generated code, want zeros", z)
	}
}

func TestFill32(t *testing.T) {
	if !Available() {
		t.Skip("this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
	for _, n := range []int{32, 64, 1024} {
		d := make([]uint32, n+64)
		Fill32(d[32:32+n], 0xdeadbeef)
		for i, v := range d {
			if inside := i >= 32 && i < 32+n; inside != (v == 0xdeadbeef) || !inside && v != 0 {
				t.Errorf("Fill32 of %d words: word %d = %#x, want only these filled", n, i-32, v)
			}
		}
	}
	if z := zeros(); slices.Max(z[:]) != 0 {
		t.Errorf("memory that Go clears with X15 = %x after Fill32, want zeros", z)
	}
}

//go:noinline
func zeros() [64]byte { return [64]byte{} }

func TestFunctions(t *testing.T) {
	if !Available() {
		t.Skip("this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
	var fs [][]byte
	for i := range 100 {
		var a Assembler
		a.Emit(MOV, Q(RAX), At(a.Const([]byte{byte(i), 1, 0, 0, 0, 0, 0, 0})))
		a.Emit(RET)
		f, err := a.Finish()
		if err != nil {
			t.Fatal(err)
		}
		fs = append(fs, f)
	}
	c, err := Load(fs...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range fs {
		if got := c.Function(i).Call(nil); got != uint64(i)+256 {
			t.Errorf("function %d returned %d, want %d", i, got, i+256)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v, want no error", err)
	}
}

// TestNeverWritableAndExecutable checks the access rights of the mapping that the
// kernel reports.
func TestNeverWritableAndExecutable(t *testing.T) {
	f := load(t, func(a *Assembler) { a.Emit(RET) })
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var may string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &may); err != nil {
			t.Fatalf("parse line %q of /proc/self/maps: %v", line, err)
		}
		if f.entry >= from && f.entry < to && may != "r-xp" {
			t.Errorf("access rights of the code = %s, want r-xp", may)
		}
		if strings.Contains(may, "w") && strings.Contains(may, "x") {
			t.Errorf("mapping %s is writable and executable, want none", line)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for what, fs := range map[string][][]byte{
		"nothing":  nil,
		"empty":    {{0xc3}, {}},
		"too much": {make([]byte, MaxLoad), {0xc3}},
	} {
		if c, err := Load(fs...); err == nil {
			t.Errorf("%s: Load returned functions at %+v, want an error", what, c.at)
		}
	}
}

// TestCollector executes generated code on several goroutines that grow their stacks in
// between, while garbage collections stop the world and move stacks.
func TestCollector(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.NumCPU())))
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	f := load(t, busy)
	var ended atomic.Bool
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for i := 0; !ended.Load(); i++ {
				c := &busyContext{turns: 20_000}
				if got := deep(i%200, func() uint64 { return f.Call(unsafe.Pointer(c)) }); got != 77 || c.done != c.turns {
					t.Errorf("Call = %d after %d turns, want 77 after %d", got, c.done, c.turns)
					return
				}
			}
		})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50 {
		runtime.GC()
	}
	ended.Store(true)
	wg.Wait()
	runtime.ReadMemStats(&after)
	if n := after.NumGC - before.NumGC; n < 50 {
		t.Errorf("%d collections during the test, want at least 50", n)
	}
}

// deep calls f after n nested calls with frames of half a kilobyte.
func deep(n int, f func() uint64) uint64 {
	var pad [512]byte
	pad[n%512] = 1
	if n == 0 {
		return f()
	}
	return deep(n-1, f) + uint64(pad[(n+1)%512])
}

// TestProfile interrupts generated code by SIGPROF, until a profile has samples of it.
func TestProfile(t *testing.T) {
	f := load(t, busy)
	for deadline := time.Now().Add(30 * time.Second); ; {
		var profile bytes.Buffer
		if err := pprof.StartCPUProfile(&profile); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
			c := &busyContext{turns: 50_000}
			if got := f.Call(unsafe.Pointer(c)); got != 77 || c.done != c.turns {
				t.Fatalf("Call = %d after %d turns, want 77 after %d", got, c.done, c.turns)
			}
		}
		pprof.StopCPUProfile()
		if external(t, profile.Bytes()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no profile of 200 ms in generated code has a sample of external code, want one within 30 s")
		}
	}
}

// external reports whether a profile names the runtime's function for samples whose
// program counter is outside of Go code.
func external(t *testing.T, profile []byte) bool {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(profile))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(b, []byte("runtime._ExternalCode"))
}

func BenchmarkCall(b *testing.B) {
	f := load(b, func(a *Assembler) { a.Emit(RET) })
	c := &busyContext{}
	for b.Loop() {
		f.Call(unsafe.Pointer(c))
	}
}
