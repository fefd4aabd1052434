package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

// snake is a command's name in C, as gpu/abi/gen makes it.
func snake(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// callStub is the guest's function of a command: handles are looked up, the
// command is put into the ring, and results are stored when it succeeded.
func callStub(b *bytes.Buffer, c cudaapi.Command) {
	p := func(f string, a ...any) { fmt.Fprintf(b, f, a...) }
	name := snake(c.Name)
	p("\tstruct bslt_%s a = {0};\n", name)
	if c.Stream {
		p("\tuint64_t context;\n")
	} else {
		p("\tstruct answer r;\n")
	}
	p("\n\tSESSION(s);\n")
	for _, r := range c.Results {
		p("\tif (!%s)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", r.Name)
	}
	if _, ok := c.First(); !ok {
		p("\tTRY(context_working(&a.ctx));\n")
	}
	var stream string
	for _, x := range c.Args {
		switch {
		case x.Handle == "stream" && c.Stream:
			stream = x.Wire()
			p("\tif (capturing())\n\t\tTRY(capture_refuse(%s));\n", x.Name)
			p("\tTRY(stream_resolve(%s, &a.%s, &context));\n", x.Name, x.Wire())
		case x.Handle != "":
			p("\tTRY(wire_%s(%s, &a.%s));\n", x.Handle, x.Name, x.Wire())
		default:
			if x.Bytes > 0 {
				p("\tif (!device_range(%s, %d))\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", x.Name, x.Bytes)
			}
			p("\ta.%s = %s;\n", x.Wire(), x.Name)
		}
	}
	op := "BSLT_OP_" + strings.ToUpper(name)
	if c.Stream {
		p("\treturn stream_put(s, a.%s, %s, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);\n", stream, op)
		return
	}
	p("\tr = call(s, %s, &a, sizeof a);\n", op)
	if c.Soft == "" && len(c.Results) == 0 {
		p("\tif (r.result == CUDA_ERROR_NOT_SUPPORTED)\n\t\treturn 0; /* a worker from before this command */\n")
	}
	if len(c.Results) > 0 {
		p("\tif (r.result == 0) {\n")
		for i, x := range c.Results {
			if x.Go == "float32" {
				p("\t\t*%s = float_of(r.value%d);\n", x.Name, i)
			} else {
				p("\t\t*%s = (%s)r.value%d;\n", x.Name, x.Type, i)
			}
		}
		p("\t}\n")
	}
	p("\treturn r.result;\n")
}
