package soft_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// printed collects what the kernels of a context print, by destination.
type printed struct {
	mu   sync.Mutex
	text map[uint32]string
}

// newPrintRig returns a rig with the kernels of print.cu, and what they print.
func newPrintRig(t *testing.T) (*rig, *printed) {
	t.Helper()
	r := newRig(t, kernelFile(t, "print"))
	p := &printed{text: map[uint32]string{}}
	r.c.(worker.Printer).PrintTo(func(to uint32, text []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.text[to] += string(text)
	})
	return r, p
}

// wait waits for the work so far, and returns what it has printed to each destination,
// and its error.
func (p *printed) wait(r *rig) (out, errs string, err error) {
	r.Helper()
	done := make(chan error, 1)
	if err := r.c.Notify(func(err error) { done <- err }); err != nil {
		r.Fatal(err)
	}
	err = patience.Receive(r.TB, time.Minute, "the kernels end", done)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text[abi.OutputStdout], p.text[abi.OutputStderr], err
}

func TestPrint(t *testing.T) {
	r, p := newPrintRig(t)
	returned, text := r.buffer(make([]byte, 16)), r.buffer([]byte("global\x00"))
	r.launch("print", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, returned, text)
	out, errs, err := p.wait(r)
	want := "none\n-7 -3 65535 A -1234567890123456789  1.50|constant|global|s|local|0x1234\n    0.667\n"
	if err != nil || errs != "" || out != want {
		t.Errorf("kernel printed %q and %q, error %v; want %q and nothing", out, errs, err, want)
	}
	r.expect(returned, 4, func(i int) uint32 { return []uint32{0, 11, 1<<32 - 1, 3}[i] })
}

func TestPrintOfManyLanes(t *testing.T) {
	r, p := newPrintRig(t)
	r.launch("lines", [3]uint32{3, 1, 1}, [3]uint32{70, 1, 1}, 0, uint32(4))
	out, _, err := p.wait(r)
	var want []string
	for block := range 3 {
		for thread := 0; thread < 70; thread += 2 {
			for i := range 4 {
				want = append(want, fmt.Sprintf("block %d thread %d round %d", block, thread, i))
			}
		}
	}
	got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("kernel printed %d lines, error %v; want %d given lines", len(got), err, len(want))
	}
}

// TestHostilePrint checks that an invalid format or string at worst ends the context.
func TestHostilePrint(t *testing.T) {
	for _, c := range []struct {
		name, memory string
		at           uint64 // offset of the format in the buffer
		arg          uint64 // offset of the string; 0: the largest address
		want         error
		length       int
	}{
		{"no end", strings.Repeat("x", 256), 0, 1, abi.ErrIllegalAddress, 0},
		{"outside", "%d\x00", 1 << 30, 1, abi.ErrIllegalAddress, 0},
		{"string outside", "%s\x00", 0, 0, abi.ErrIllegalAddress, 0},
		{"string without end", "%s\x00" + strings.Repeat("x", 253), 0, 3, abi.ErrIllegalAddress, 0},
		{"string with precision", "%.9s\x00" + strings.Repeat("x", 251), 0, 5, nil, 9},
		{"wide", "%2147483647d%2147483647d\x00", 0, 1, nil, 8192},
		{"long", strings.Repeat("long ", 20_000) + "\x00", 0, 1, nil, 32 << 10},
		{"n", "%n%1$d\x00", 0, 1, nil, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p := newPrintRig(t)
			buf := r.buffer([]byte(c.memory))
			arg := buf + c.arg
			if c.arg == 0 {
				arg = 1<<64 - 2
			}
			r.launch("raw", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, buf+c.at, arg)
			out, _, err := p.wait(r)
			if !errors.Is(err, c.want) || len(out) != c.length {
				t.Errorf("kernel printed %d bytes, error %v; want %d, %v", len(out), err, c.length, c.want)
			}
		})
	}
}

// TestAssert checks that each thread that fails prints its line, and that the context
// stays in the state CUDA_ERROR_ASSERT.
func TestAssert(t *testing.T) {
	r, p := newPrintRig(t)
	values := make([]byte, 4*8)
	values[4*1], values[4*5] = 2, 3 // index 5: block 1, x 1
	r.launch("check", [3]uint32{2, 1, 1}, [3]uint32{4, 2, 4}, 0, r.buffer(values))
	// A kernel that is launched after it is not executed; the launch returns the error if
	// the first one has ended.
	l := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: pack(uint32(1))}
	if err := r.c.Launch(nil, r.funcs["lines"], l, nil); err != nil && !errors.Is(err, abi.ErrAssert) {
		t.Fatal(err)
	}
	out, errs, err := p.wait(r)
	var want string
	for i := range 8 {
		want += fmt.Sprintf("check.cu:42: void check(const u32 *): block: [1,0,0], thread: [1,%d,%d] Assertion `values[i] <= 2` failed.\n", i%2, i/2)
	}
	if !errors.Is(err, abi.ErrAssert) || !strings.Contains(err.Error(), "check.cu:42: ") || out != "" || errs != want {
		t.Errorf("error %v, printed %q and %q; want %v, nothing and %q", err, out, errs, abi.ErrAssert, want)
	}
	if _, err := r.c.MemAlloc(1); !errors.Is(err, abi.ErrAssert) {
		t.Errorf("MemAlloc after the assertion: error %v, want %v", err, abi.ErrAssert)
	}
}
