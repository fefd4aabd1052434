package main

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

// cardTest returns a test that calls everything that is passed on, each case of a
// union, with what the double must have received.
func cardTest(commands []cudaapi.Command) ([]byte, error) {
	var b bytes.Buffer
	p := func(f string, a ...any) { fmt.Fprintf(&b, f, a...) }
	p("%spackage cuda\n\nimport (\n\"fmt\"\n\n\"github.com/basalt-gpu/basalt/gpu/abi\"\n\"github.com/basalt-gpu/basalt/gpu/worker\"\n)\n\nvar passedOnCalls = []passedOnCall{\n", generatedGo)
	for _, c := range commands {
		for _, of := range cases(c) {
			call := testCall{command: c, of: fmt.Sprint(of), address: "o.address", p: p, next: firstArgument, seen: map[string][]string{}}
			call.write()
		}
	}
	p("}\n")
	return format.Source(b.Bytes())
}

// testCall is a call in a test: its arguments, and what the double logs of each.
type testCall struct {
	command cudaapi.Command
	of      string // the case of a union
	address string // of device memory
	p       func(string, ...any)
	next    int // next number
	args    []string
	seen    map[string][]string // by parameter: "what", value, "what", value, …
}

func (t *testCall) number() string {
	t.next++
	return fmt.Sprint(t.next - 1)
}

func (t *testCall) write() {
	c := t.command
	t.p("{%q, func(c worker.Context, o objects, done func(error)) (string, bool, error) {\n", c.Symbol)
	for _, a := range c.Args {
		value := t.argument(a)
		if a.Handle != "context" {
			t.args = append(t.args, value)
		}
	}
	if c.Stream {
		t.args = append(t.args, "done")
	}
	t.results()
	var text, words []string
	for _, q := range c.Params {
		for i := 0; i < len(t.seen[q.Name]); i += 2 {
			text, words = append(text, " "+t.seen[q.Name][i]+"=%d"), append(words, ", "+t.seen[q.Name][i+1])
		}
	}
	if len(words) == 0 {
		t.p("return %q, good, err\n}},\n", c.Symbol)
	} else {
		t.p("return fmt.Sprintf(\"%s%s\"%s), good, err\n}},\n", c.Symbol, strings.Join(text, ""), strings.Join(words, ""))
	}
}

// argument returns a value for a parameter and records what the double logs of
// it.
func (t *testCall) argument(a cudaapi.Arg) string {
	sees := func(what, value string) { t.seen[a.Name] = append(t.seen[a.Name], what, value) }
	switch {
	case a.Handle != "":
		sees(a.Name, "o."+a.Handle+"Handle")
		t.next++
		return "o." + a.Handle
	case a.Bytes > 0:
		sees(a.Name, t.address)
		t.next++
		return t.address
	case a.Layout != nil:
		return t.literal(a.Layout, func(e one, value string) {
			if e.Device {
				value = "o.device"
			}
			sees(a.Name+"."+e.path, value)
		})
	case a.Elements.Max > 0:
		var all []string
		for i := range a.Elements.Max {
			all = append(all, t.number())
			sees(fmt.Sprintf("%s[%d]", a.Name, i), all[i])
		}
		return a.As() + "{" + strings.Join(all, ", ") + "}"
	}
	value := t.number()
	for _, u := range unions(t.command) {
		if u.Tag.Name == a.Name {
			value = t.of
		}
	}
	sees(a.Name, value)
	return value
}

// literal returns a struct in Go with a different number in each member.
func (t *testCall) literal(l *cudaapi.Layout, each func(e one, value string)) string {
	var fields []string
	arrays := map[string][]string{}
	if l.Union {
		fields = append(fields, "Case: "+t.of)
	}
	for _, e := range elements(l, t.of) {
		value := t.number()
		switch {
		case e.Device:
			value = "0"
		case e.Only != "":
			value = e.Only
		case e.Touch != "":
			value = t.address
		}
		each(e, value)
		if e.Count == 0 {
			fields = append(fields, e.field+": "+value)
			continue
		}
		arrays[e.Field()] = append(arrays[e.Field()], value)
		if len(arrays[e.Field()]) == e.Count {
			kind, _ := e.Go()
			fields = append(fields, fmt.Sprintf("%s: [%d]%s{%s}", e.Field(), e.Count, kind, strings.Join(arrays[e.Field()], ", ")))
		}
	}
	return "abi." + l.Name() + "{" + strings.Join(fields, ", ") + "}"
}

// results writes the call and compares its results with the double's numbers.
func (t *testCall) results() {
	c := t.command
	var names, good []string
	next := firstResult
	for i := range c.Results {
		names = append(names, fmt.Sprintf("value%d", i))
		good = append(good, fmt.Sprintf("value%d == %d", i, next))
		next++
	}
	for i, o := range c.Outs {
		name := fmt.Sprintf("struct%d", i)
		names = append(names, name)
		if o.Layout.Union {
			good = append(good, name+".Case == "+t.of)
		}
		for _, e := range elements(o.Layout, t.of) {
			kind, _ := e.Go()
			value := next
			if kind == "uint8" {
				value %= 256 // the value in C's type
			}
			good = append(good, fmt.Sprintf("%s.%s == %d", name, e.field, value))
			next++
		}
	}
	t.p("%s := c.%s(%s)\n", strings.Join(append(names, "err"), ", "), c.Name, strings.Join(t.args, ", "))
	if len(good) == 0 {
		good = []string{"true"}
	}
	t.p("good := %s\n", strings.Join(good, " && "))
	if !c.Stream {
		t.p("done(nil)\n")
	}
}
