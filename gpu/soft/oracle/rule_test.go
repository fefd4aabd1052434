package oracle

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// TestErrorsNameTheForm checks that the error of an instruction that is not implemented
// names the thread, the line, the instruction and the form.
func TestErrorsNameTheForm(t *testing.T) {
	for inst, want := range map[string]string{
		"frobnicate %r1, %r2;": "not implemented by the oracle: opcode frobnicate",
		"mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3};": "not implemented by the oracle: mma with shape .m16n8k99 and A of type .f16",
	} {
		mod, err := ptx.Parse(".version 8.4\n.target sm_90\n.address_size 64\n.entry k() { .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p<4>;\n" + inst + "\nret; }\n")
		if err != nil {
			t.Fatalf("parse %s: %v", inst, err)
		}
		l := Launch{Func: mod.Funcs[0], Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{warpSize, 1, 1}}
		err = l.Run()
		if err == nil {
			t.Errorf("%s: no error, want %q", inst, want)
			continue
		}
		for _, part := range []string{"thread [0 0 0], line 5, " + strings.TrimSuffix(inst, ";"), want} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q, want it to contain %q", inst, err, part)
			}
		}
	}
}
