package compile

import (
	"os"
	"strings"
	"testing"
)

func TestZZScratch(t *testing.T) {
	text, _ := os.ReadFile("/tmp/w/ptxscratch/forms.list")
	for line := range strings.Lines(string(text)) {
		kernels, err := DefaultCapability.Check([]byte(".version 8.7\n.target sm_90a\n.address_size 64\n.func fn(.param .b32 z) { ret; }\n.entry k(.param .align 16 .b8 p[64]) {\n.reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<8>; .reg .pred %p<4>; .reg .b128 %q<3>;\n" + line + "L: ret; }\n"))
		if strings.Contains(line, "%q") == false {
			kernels, err = DefaultCapability.Check([]byte(".version 8.7\n.target sm_90a\n.address_size 64\n.entry k(.param .align 16 .b8 p[64]) {\n.reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<8>; .reg .pred %p<4>;\n" + line + "L: ret; }\n"))
		}
		if err == nil {
			err = kernels[0].Err
		}
		if err != nil {
			t.Logf("%s   %v", line, err)
		}
	}
}
