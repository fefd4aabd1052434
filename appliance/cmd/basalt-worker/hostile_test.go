package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

const ptxHead = ".version 6.4\n.target sm_61\n.address_size 64\n"

// hostile returns PTX by name: short text that requests much memory, or 20 MB of text.
func hostile() map[string]string {
	const large = 20 << 20
	entry := func(body string) string {
		return ".visible .entry k()\n{\n.reg .b32 %r<9>;\n.reg .pred %p<2>;\n" + body + "ret;\n}\n"
	}
	many := func(line string) string { return ptxHead + entry(strings.Repeat(line, large/len(line))) }
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	return map[string]string{
		"instructions":       many("add.s32 %r1, %r2, %r3;\n"),
		"short instructions": many("a;"),
		"long instructions":  many("fma.rn.f32 %r1, {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4};\n"),
		"operands":           many("a " + strings.Repeat("_,", 1000) + "_;\n"),
		"registers":          ptxHead + numbered(16000, ".visible .entry k%d()\n{\n.reg .b32 %%r<65536>;\nret;\n}\n"),
		"scopes":             many("{.reg .b32 a;}"),
		"labels":             ptxHead + entry(numbered(1_500_000, "L%d:\n")+"bra L0;\n"),
		"variables":          ptxHead + numbered(600_000, ".global .b8 v%d[9];\n"),
		"functions":          ptxHead + numbered(400_000, ".func f%d() { ret; }\n"),
		"initialisers":       ptxHead + ".global .b8 v[] = {" + strings.Repeat("1,", large/2) + "1};\n",
		"calls": ptxHead + ".func f()\n{\n.reg .b32 %r<9>;\n" + strings.Repeat("add.s32 %r1, %r2, %r3;\n", 60_000) + "ret;\n}\n" +
			numbered(2000, ".visible .entry k%d()\n{\ncall f;\nret;\n}\n"),
	}
}

// peak returns the peak resident memory of the process in bytes.
func peak(t *testing.T, pid int) uint64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("/proc/PID/status has no VmHWM")
	return 0
}

// memoryLimit returns the memory that a module of n bytes may take, according to the comments
// of the limits in gpu/ptx and gpu/soft/compile, with numbers of its own: the image, which is
// shared with the guest, its copy and its tables, and with programs those of its kernels; half
// as much is added for garbage (SetGCPercent in main).
func memoryLimit(n uint64, programs bool) uint64 {
	held := n + min(8<<20+32*n, 192<<20)
	if programs {
		held += 512 << 10 * 208
	}
	return n + held*3/2
}

// TestHostilePTXMemory: a tenant's PTX takes at most a small multiple of its size of
// the host's memory, whatever its content, and the worker continues to answer.
func TestHostilePTXMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("loads modules of 20 MB")
	}
	bin := build(t)
	for _, driver := range []string{"soft", "null"} {
		t.Run(driver, func(t *testing.T) { hostilePTX(t, bin, driver) })
	}
}

func hostilePTX(t *testing.T, bin, driver string) {
	for name, image := range hostile() {
		t.Run(name, func(t *testing.T) {
			cmd, g, _ := start(t, bin, driver)
			if _, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}, nil); err != nil {
				t.Fatal(err)
			}
			before := peak(t, cmd.Process.Pid)
			err := load(t, g, image)
			took := peak(t, cmd.Process.Pid) - before
			t.Logf("%d MB of PTX: %d MB of memory; %v", len(image)>>20, took>>20, err)
			if limit := memoryLimit(uint64(len(image)), name == "calls"); took > limit {
				t.Errorf("%d bytes of PTX took %d bytes of memory, want at most %d", len(image), took, limit)
			}
			if _, _, err := g.Call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: 1}, nil); err != nil {
				t.Errorf("call after loading the module: %v", err)
			}
		})
	}
}

func load(t *testing.T, g *guesttest.Guest, image string) error {
	t.Helper()
	region, err := g.Region(1, uint64(len(image)+1+4095)&^4095)
	if err != nil {
		t.Fatal(err)
	}
	copy(region.Bytes(0, uint64(len(image))), image)
	_, _, err = g.Call(abi.OpModuleLoad, abi.ModuleLoad{Ctx: 1, Module: 2, FirstFunction: 10, ImageRegion: 1, ImageLen: uint64(len(image)), OutOff: g.Arena, OutLen: 64 << 10}, nil)
	// The record of a module with many functions does not fit into OutLen: ErrInvalidValue.
	if err != nil && !errors.Is(err, abi.ErrInvalidPTX) && !errors.Is(err, abi.ErrOutOfMemory) && !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("error of the load = %v, want InvalidPTX, OutOfMemory or InvalidValue", err)
	}
	return err
}
