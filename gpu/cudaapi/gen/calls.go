package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

// snake returns a command's name in C, as gpu/abi/gen does.
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

// callStub is the guest's function of a command: handles are looked up, structs
// are copied member by member, the command is put into the ring, and results
// are stored when it succeeded.
func callStub(b *bytes.Buffer, c cudaapi.Command) {
	p := func(f string, a ...any) { fmt.Fprintf(b, f, a...) }
	name := snake(c.Name)
	p("\tstruct bslt_%s a = {0};\n", name)
	if len(c.Outs) > 0 {
		p("\tuint8_t record[%d];\n\tstruct piece out;\n", c.Record())
	}
	if c.Stream {
		p("\tuint64_t context;\n")
	} else {
		p("\tstruct answer r;\n")
	}
	p("\n\tSESSION(s);\n")
	for _, name := range pointers(c) {
		p("\tif (!%s)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", name)
	}
	if _, ok := c.First(); !ok {
		p("\tTRY(context_working(&a.ctx));\n")
	}
	stream := stubArguments(p, c)
	op := "BSLT_OP_" + strings.ToUpper(name)
	if c.Stream {
		p("\treturn stream_put(s, a.%s, %s, 0, BSLT_NO_SLOT, &a, sizeof a, NULL, 0);\n", stream, op)
		return
	}
	if len(c.Outs) > 0 {
		p("\tTRY(record_open(s, sizeof record, &out));\n\ta.out_off = out.off;\n\ta.out_len = out.len;\n\ta.out_region = out.number;\n")
	}
	p("\tr = call(s, %s, &a, sizeof a);\n", op)
	if len(c.Outs) > 0 {
		p("\trecord_close(s, &out, record, sizeof record);\n")
	}
	if c.Soft == "" && len(c.Results) == 0 {
		p("\tif (r.result == CUDA_ERROR_NOT_SUPPORTED)\n\t\treturn 0; /* an older worker without this command */\n")
	}
	stubResults(p, c)
	p("\treturn r.result;\n")
}

// pointers returns the parameters that are pointers, except arrays, which may be
// empty.
func pointers(c cudaapi.Command) (all []string) {
	for _, p := range c.Params {
		for _, a := range slices.Concat(c.Results, c.Outs, c.Args) {
			led := a.Layout != nil || strings.HasSuffix(p.Type, " *") && p.Type != "void *" && a.Elements.Max == 0
			if a.Name == p.Name && led && !slices.Contains(all, p.Name) {
				all = append(all, p.Name)
			}
		}
	}
	return all
}

// stubArguments sets the command's arguments and returns the stream that determines
// its order.
func stubArguments(p func(string, ...any), c cudaapi.Command) (stream string) {
	for _, x := range c.Args {
		switch {
		case x.Handle == "stream" && c.Stream:
			stream = x.Wire()
			stubCapture(p, c, x)
			p("\tTRY(stream_resolve(%s, &a.%s, &context));\n", x.Name, x.Wire())
		case x.Handle != "":
			p("\tTRY(wire_%s(%s, &a.%s));\n", x.Handle, x.Name, x.Wire())
		case x.Layout != nil:
			p("\tTRY(put_%s(%s, %sa.%s));\n", snake(x.Layout.Name()), x.Name, tag(x), x.Wire())
		case x.Elements.Max > 0:
			n := fmt.Sprintf("(long)%s", x.Elements.By)
			if x.Elements.Less > 0 {
				n += fmt.Sprintf(" - %d", x.Elements.Less)
			}
			p("\tTRY(put_array(%s, %s, a.%s, sizeof *%s, %d));\n", x.Name, n, x.Wire(), x.Name, x.Elements.Max)
		default:
			value := x.Name
			if x.Type == "void *" {
				value = "(uintptr_t)" + value
			}
			if x.Bytes > 0 {
				p("\tif (!device_range(%s, %d))\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", value, x.Bytes)
			}
			p("\ta.%s = %s;\n", x.Wire(), value)
		}
	}
	return stream
}

// stubCapture is what the function does while streams are being captured.
func stubCapture(p func(string, ...any), c cudaapi.Command, stream cudaapi.Arg) {
	if c.Capture == "" {
		p("\tif (capturing())\n\t\tTRY(capture_refuse(%s));\n", stream.Name)
		return
	}
	names := make([]string, len(c.Params))
	for i, x := range c.Params {
		names[i] = x.Name
	}
	p("\tif (capturing()) {\n\t\tbool done = false;\n\n\t\tTRY(%s(%s, &done));\n\t\tif (done)\n\t\t\treturn 0;\n\t}\n", c.Capture, strings.Join(names, ", "))
}

// tag returns the argument that selects the member of a union.
func tag(x cudaapi.Arg) string {
	if x.Layout.Union {
		return x.Tag.Name + ", "
	}
	return ""
}

func stubResults(p func(string, ...any), c cudaapi.Command) {
	if len(c.Results)+len(c.Outs) == 0 {
		return
	}
	p("\tif (r.result == 0) {\n")
	for i, x := range c.Results {
		if x.Go == "float32" {
			p("\t\t*%s = float_of(r.value%d);\n", x.Name, i)
		} else {
			p("\t\t*%s = (%s)r.value%d;\n", x.Name, x.Type, i)
		}
	}
	at := 0
	for _, x := range c.Outs {
		p("\t\tget_%s(record + %d, %s%s);\n", snake(x.Layout.Name()), at, tag(x), x.Name)
		at += x.Layout.Wire()
	}
	p("\t}\n")
}

// structStubs writes the copies between the program's structs and those of the
// channel, with checks of both layouts against the table.
func structStubs(b *bytes.Buffer, t *cudaapi.Table, commands []cudaapi.Command) {
	p := func(f string, a ...any) { fmt.Fprintf(b, f, a...) }
	in, out := map[string]bool{}, map[string]bool{}
	for _, c := range commands {
		for _, a := range c.Args {
			in[layoutType(a)] = true
		}
		for _, a := range c.Outs {
			out[layoutType(a)] = true
		}
	}
	for _, l := range t.Layouts() {
		p("\n_Static_assert(sizeof(%s) == %d, \"%s\");\n", l.Type, l.Size, l.Type)
		for _, m := range l.Members {
			p("_Static_assert(offsetof(%s, %s) == %d && sizeof(((%s *)0)->%s) == %d, \"%s.%s\");\n",
				l.Type, m.Path, m.Offset, l.Type, m.Path, m.Bytes(), l.Type, m.Path)
		}
		if in[l.Type] {
			structPut(p, l)
		}
		if out[l.Type] {
			structGet(p, l)
		}
	}
}

func layoutType(a cudaapi.Arg) string {
	if a.Layout == nil {
		return ""
	}
	return a.Layout.Type
}

// byCase writes each case's members; for a union in a switch, with unknown for
// other cases.
func byCase(p func(string, ...any), l *cudaapi.Layout, unknown string, each func(p func(string, ...any), m cudaapi.Member)) {
	inner := p
	if l.Union {
		p("\tswitch (of) {\n")
		inner = func(f string, a ...any) {
			for line := range strings.Lines(fmt.Sprintf(f, a...)) {
				p("\t%s", line)
			}
		}
	}
	for _, of := range l.Cases() {
		if l.Union {
			p("\tcase %d:\n", of)
		}
		for _, m := range l.Members {
			if m.Case == of {
				each(inner, m)
			}
		}
		if l.Union {
			inner("\tbreak;\n")
		}
	}
	if l.Union {
		p("\tdefault:\n\t\t%s;\n\t}\n", unknown)
	}
}

// structPut copies the program's struct and checks the copy: another thread may
// write to the original, which may even be unaligned.
func structPut(p func(string, ...any), l *cudaapi.Layout) {
	of := ""
	if l.Union {
		of = "int of, "
	}
	p("\nstatic int put_%s(const void *from, %suint8_t *to)\n{\n\t%s c, t;\n\n\tmemcpy(&c, from, sizeof c);\n\tmemset(&t, 0, sizeof t);\n", snake(l.Name()), of, l.Type)
	byCase(p, l, "return CUDA_ERROR_INVALID_VALUE", func(p func(string, ...any), m cudaapi.Member) {
		switch {
		case m.Unused:
			return
		case m.Zero:
			p("\tif (!all_zero(&c.%s, sizeof c.%s))\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", m.Path, m.Path)
			return
		case m.Only != "":
			p("\tif (c.%s != %s)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", m.Path, m.Only)
		case m.Device:
			p("\tif (c.%s != 0)\n\t\treturn CUDA_ERROR_INVALID_DEVICE;\n", m.Path)
		case m.Touch != "":
			p("\tif (c.%s && !device_range((uintptr_t)c.%s, c.%s))\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", m.Touch, m.Path, m.Touch)
		}
		if m.Count > 0 {
			p("\tmemcpy(t.%s, c.%s, sizeof t.%s);\n", m.Path, m.Path, m.Path)
		} else {
			p("\tt.%s = c.%s;\n", m.Path, m.Path)
		}
	})
	p("\tmemcpy(to, &t, sizeof t);\n\treturn 0;\n}\n")
}

// structGet sets the program's struct; of a union only the selected member.
func structGet(p func(string, ...any), l *cudaapi.Layout) {
	of := ""
	if l.Union {
		of = "int of, "
	}
	p("\nstatic void get_%s(const uint8_t *from, %svoid *to)\n{\n\t%s t, r;\n\n\tmemcpy(&t, from, sizeof t);\n", snake(l.Name()), of, l.Type)
	if l.Union {
		p("\tmemcpy(&r, to, sizeof r);\n")
	} else {
		p("\tmemset(&r, 0, sizeof r);\n")
	}
	byCase(p, l, "break", func(p func(string, ...any), m cudaapi.Member) {
		switch {
		case m.Zero || m.Unused:
		case m.Count > 0:
			p("\tmemcpy(r.%s, t.%s, sizeof t.%s);\n", m.Path, m.Path, m.Path)
		default:
			p("\tr.%s = t.%s;\n", m.Path, m.Path)
		}
	})
	p("\tmemcpy(to, &r, sizeof r);\n}\n")
}
