package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saxpy adds a multiple of a buffer to another. It writes beyond a buffer that is shorter than
// n.
const saxpy = head + `.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
	.reg .b32 %r<5>; .reg .f32 %f<5>; .reg .b64 %rd<6>; .reg .pred %p;
	ld.param.u32 %r1, [n];
	ld.param.f32 %f1, [a];
	ld.param.u64 %rd1, [x];
	ld.param.u64 %rd2, [y];
	mov.u32 %r2, %tid.x;
	setp.ge.u32 %p, %r2, %r1;
	@%p ret;
	mul.wide.u32 %rd3, %r2, 4;
	add.u64 %rd4, %rd1, %rd3;
	add.u64 %rd5, %rd2, %rd3;
	ld.global.f32 %f2, [%rd4];
	ld.global.f32 %f3, [%rd5];
	fma.rn.f32 %f4, %f1, %f2, %f3;
	.loc 1 9 1
	st.global.f32 [%rd5], %f4;
	ret;
}
.file 1 "saxpy.cu"
`

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "saxpy.ptx")
	if err := os.WriteFile(file, []byte(saxpy), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args      []string
		status    int
		out, errs string
	}{
		"runs": {[]string{"-block", "4", file, "saxpy", "u32=4", "f32=2", "f32[4]=1,2,3,4", "f32[4]=0.5"}, 0,
			"2: f32[4] 1 2 3 4\n3: f32[4] 2.5 4 6 8\n", ""},
		"as a model": {[]string{"-model", "h100", file, "saxpy", "u32=1", "f32=2", "f32[1]=1", "f32[65]=1"}, 0,
			"3: f32[65] 3" + strings.Repeat(" 0", 63) + " …\n", ""},
		"past the end": {[]string{"-check", "memory", "-block", "4,1,1", file, "saxpy", "u32=4", "f32=2", "f32[4]=1,2,3,4", "f32[3]"}, 1,
			"", "4 bytes past the end of the allocation of 12 bytes"},
		"too few":     {[]string{file, "saxpy", "u32=4"}, 1, "", "kernel saxpy: 1 arguments, want 4"},
		"wrong size":  {[]string{file, "saxpy", "u64=4", "f32=2", "f32[1]", "f32[1]"}, 1, "", "kernel saxpy: argument 0 (u64=4) has 8 bytes, want the 4 of the parameter"},
		"no kernel":   {[]string{file, "daxpy"}, 1, "", "has no kernel daxpy"},
		"no argument": {[]string{file, "saxpy", "4"}, 2, "", "want TYPE=VALUE"},
		"bad number":  {[]string{file, "saxpy", "u8=256"}, 2, "", "out of range"},
		"many values": {[]string{file, "saxpy", "u8[2]=1,2,3"}, 2, "", "3 values, want at most 2"},
		"bad check":   {[]string{"-check", "all", file, "saxpy"}, 2, "", "unknown check"},
		"no file":     {[]string{file + "x", "saxpy"}, 2, "", "no such file"},
		"nothing":     {nil, 2, "", "want FILE and KERNEL"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := run(append([]string{"run"}, c.args...), &out, &errs); status != c.status {
				t.Errorf("exit status = %d, want %d; errors:\n%s", status, c.status, &errs)
			}
			if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) || c.errs == "" && errs.Len() > 0 {
				t.Errorf("output and errors:\n%s%s\nwant them to contain:\n%s%s", &out, &errs, c.out, c.errs)
			}
		})
	}
}
