package main

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

// workerTest returns commands with structs and arrays as a guest sends them, and
// a context that records what reaches a driver. They are also seeds of the
// worker's fuzz target.
func workerTest(commands []cudaapi.Command) ([]byte, error) {
	var b bytes.Buffer
	p := func(f string, a ...any) { fmt.Fprintf(&b, f, a...) }
	p("%spackage worker_test\n\nimport (\n\"fmt\"\n\n\"github.com/basalt-gpu/basalt/gpu/abi\"\n\"github.com/basalt-gpu/basalt/gpu/worker\"\n\"github.com/basalt-gpu/basalt/gpu/worker/guesttest\"\n)\n\n", generatedGo)
	var calls bytes.Buffer
	for _, c := range commands {
		if !pointed(c) {
			continue
		}
		recorderMethod(p, c)
		for _, of := range cases(c) {
			t := testCall{command: c, of: fmt.Sprint(of), address: "4096", next: firstArgument, seen: map[string][]string{}}
			t.p = func(f string, a ...any) { fmt.Fprintf(&calls, f, a...) }
			t.sent()
		}
	}
	numbered(p, commands)
	p("// structCalls are commands with structs; out is the offset for a returned record.\nvar structCalls = []structCall{\n%s}\n", calls.Bytes())
	return format.Source(b.Bytes())
}

func recorderMethod(p func(string, ...any), c cudaapi.Command) {
	var words, values []string
	for _, a := range c.Args {
		if a.Handle == "" {
			words = append(words, goName(a))
		}
	}
	next := firstResult
	for range c.Results {
		values = append(values, fmt.Sprint(next))
		next++
	}
	for _, o := range c.Outs {
		of := ""
		if o.Layout.Union {
			of = goName(*o.Tag)
		}
		values = append(values, fmt.Sprintf("numbered%s(%s)", o.Layout.Name(), of))
	}
	p("func (r *recorder) %s {\nr.saw(%s)\nreturn %s\n}\n\n", signature(c, "worker."), strings.Join(words, ", "), strings.Join(append(values, "nil"), ", "))
}

// sent writes a command and its expected result.
func (t *testCall) sent() {
	c := t.command
	var fields, words []string
	if _, ok := c.First(); !ok {
		fields = append(fields, "Ctx: 1")
	}
	for _, a := range c.Args {
		if a.Handle != "" {
			fields = append(fields, fmt.Sprintf("%s: %d", a.Field(), map[string]int{"context": 1, "stream": 2, "event": 3}[a.Handle]))
			continue
		}
		value := t.argument(a)
		for _, n := range c.Counts {
			if n.By == a.Name {
				value = "5"
			}
		}
		words = append(words, value)
		if a.Layout != nil {
			value += ".Bytes()"
		}
		fields = append(fields, a.Field()+": "+value)
	}
	records := "nil"
	if len(c.Outs) > 0 {
		fields = append(fields, "OutOff: out", fmt.Sprintf("OutLen: %d", c.Record()))
		var all []string
		for _, o := range c.Outs {
			of := ""
			if o.Layout.Union {
				of = t.of
			}
			all = append(all, fmt.Sprintf("numbered%s(%s).Bytes()", o.Layout.Name(), of))
		}
		records = fmt.Sprintf("func() []byte { b := %s; return b[:] }", strings.Join(all, ", "))
	}
	value := 0
	if len(c.Results) > 0 {
		value = firstResult
	}
	t.p("{abi.Op%s, func(out uint64) guesttest.Args { return abi.%s{%s} }, fmt.Sprintln(%s), %d, %s},\n",
		c.Name, c.Name, strings.Join(fields, ", "), strings.Join(words, ", "), value, records)
}

// numbered writes structs with a different number in each member.
func numbered(p func(string, ...any), commands []cudaapi.Command) {
	done := map[string]bool{}
	for _, c := range commands {
		for _, o := range c.Outs {
			if done[o.Type] {
				continue
			}
			done[o.Type] = true
			if !o.Layout.Union {
				t := testCall{next: firstArgument}
				p("func numbered%s() %s { return %s }\n\n", o.Layout.Name(), o.As(), t.literal(o.Layout, func(one, string) {}))
				continue
			}
			p("func numbered%s(of int32) %s {\nswitch of {\n", o.Layout.Name(), o.As())
			for _, of := range o.Layout.Cases() {
				t := testCall{next: firstArgument, address: "4096", of: fmt.Sprint(of)}
				p("case %d:\nreturn %s\n", of, t.literal(o.Layout, func(one, string) {}))
			}
			p("}\nreturn %s{}\n}\n\n", o.As())
		}
	}
}
