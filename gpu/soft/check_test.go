package soft_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// checkHead is the start of a kernel with one parameter in %rd1, the thread index in
// %r1 and the address of its word of s in %r2.
const checkHead = ptxHead + `.visible .entry k(.param .u64 out)
{
	.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<3>;
	.shared .align 4 .b8 s[512];
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, s;
	shl.b32 %r3, %r1, 2;
	add.u32 %r2, %r2, %r3;
	.loc 1 42 7
`

const checkTail = `
	ret;
}
.file 1 "kernel.cu"
`

// TestChecks checks that each mistake is reported by its check, with block, thread and
// line, and not without the check, and that correct kernels are not reported.
func TestChecks(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		checks string // those that report it; empty if none does
		wants  []string
	}{
		"past the end": {"add.u64 %rd1, %rd1, 4096;\nst.global.u32 [%rd1], 1;", "memory",
			[]string{"past the end of the allocation of 4096 bytes at 0x", "block [0 0 0], thread [0 0 0]", "kernel.cu:42"}},
		"before":               {"st.global.u32 [%rd1-8], 1;", "memory", []string{"8 bytes before the allocation of 4096 bytes"}},
		"past shared memory":   {"st.shared.u32 [s+512], 1;", "memory", []string{"shared address 0x200, want it in the space's 512 bytes"}},
		"misaligned":           {"st.global.u32 [%rd1+2], 1;", "memory", []string{"4 bytes at global address 0x"}},
		"unwritten":            {"ld.shared.u32 %r4, [%r2];", "init", []string{"shared address 0x0, which no thread has written", "kernel.cu:42"}},
		"unwritten, generic":   {"cvt.u64.u32 %rd2, %r2;\ncvta.shared.u64 %rd2, %rd2;\nld.u32 %r4, [%rd2];", "init", []string{"which no thread has written"}},
		"unwritten atomic":     {"atom.shared.add.u32 %r4, [%r2], 1;", "init", []string{"which no thread has written"}},
		"half written":         {"st.shared.u16 [%r2], 1;\nld.shared.u32 %r4, [%r2];", "init", []string{"shared address 0x2"}},
		"written":              {"st.shared.u32 [%r2], 1;\nld.shared.u32 %r4, [%r2];\natom.shared.add.u32 %r4, [%r2], 1;", "", nil},
		"two writers":          {"st.shared.u32 [s], %r1;", "race", []string{"race: write of shared address 0x0", "thread [1 0 0]", "thread [0 0 0] writes it"}},
		"write, read":          {"st.shared.u32 [%r2], %r1;\nxor.b32 %r4, %r2, 128;\nld.shared.u32 %r5, [%r4];", "race", []string{"race: read of shared address"}},
		"write, barrier, read": {"st.shared.u32 [%r2], %r1;\nbar.sync 0;\nxor.b32 %r4, %r2, 128;\nld.shared.u32 %r5, [%r4];", "", nil},
		"read, write": {"st.shared.u32 [%r2], %r1;\nbar.sync 0;\nxor.b32 %r4, %r2, 128;\nld.shared.u32 %r5, [%r4];\nst.shared.u32 [%r2], %r5;",
			"race", []string{"race: write of shared address", "reads it"}},
		"write, warp, read": {"st.shared.u32 [%r2], %r1;\nbar.warp.sync -1;\nxor.b32 %r4, %r2, 4;\nld.shared.u32 %r5, [%r4];", "", nil},
		"a warp is no block": {"st.shared.u32 [%r2], %r1;\nbar.warp.sync -1;\nxor.b32 %r4, %r2, 128;\nld.shared.u32 %r5, [%r4];",
			"race", []string{"race: read"}},
		"read, warp, write, many": {"st.shared.u32 [%r2], %r1;\nbar.sync 0;\nld.shared.u32 %r5, [s];\nbar.warp.sync -1;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [s], 9;",
			"race", []string{"race: write of shared address 0x0"}},
		"writers of the same": {"st.shared.u32 [s], 7;", "", nil},
		"atomic":              {"st.shared.u32 [s], 7;\nbar.sync 0;\natom.shared.add.u32 %r4, [s], 1;", "", nil},
		"volatile":            {"st.volatile.shared.u32 [s], %r1;\nld.volatile.shared.u32 %r4, [s];", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, checks := range []string{"memory", "race", "init", "memory,race,init"} {
				want := []string(nil)
				if c.checks != "" && strings.Contains(checks, c.checks) {
					want = c.wants
				}
				err := runChecked(t, checks, checkHead+c.body+checkTail)
				if want == nil && err != nil && (c.checks != "memory" || !errors.Is(err, abi.ErrIllegalAddress) && !errors.Is(err, abi.ErrMisaligned)) {
					t.Errorf("check=%s: kernel error = %v, want none", checks, err)
				}
				if want != nil && err == nil {
					t.Errorf("check=%s: kernel error = nil, want one with %q", checks, want)
					continue
				}
				for _, part := range want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("check=%s: kernel error = %v, want it to contain %q", checks, err, part)
					}
				}
			}
		})
	}
}

// runChecked executes a kernel k in two blocks of 64 threads with a buffer of 4096
// bytes, and returns its error.
func runChecked(t *testing.T, checks, src string) error {
	t.Helper()
	c, err := model.ParseChecks(checks)
	if err != nil {
		t.Fatal(err)
	}
	r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Check: c}, src)
	out := r.buffer(make([]byte, 4096))
	done := make(chan error, 1)
	if err := r.c.Launch(nil, r.funcs["k"], launchOf(2, 64, out), func(err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	return <-done
}

func launchOf(blocks, threads uint32, params ...uint64) worker.Launch {
	l := worker.Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}}
	for _, p := range params {
		l.Params = binary.LittleEndian.AppendUint64(l.Params, p)
	}
	return l
}
