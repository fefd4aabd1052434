package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

var exported = regexp.MustCompile(`(?m)^EXPORT int (\w+)\(`)

// doubled returns the functions of the double of libcuda that are written by
// hand.
func doubled() (map[string]bool, error) {
	text, err := os.ReadFile(card + "/testdata/double.c")
	all := map[string]bool{}
	for _, m := range exported.FindAllSubmatch(text, -1) {
		all[string(m[1])] = true
	}
	return all, err
}

// cardDouble returns the double's functions for commands that are passed on: they
// log their arguments and return numbers of their own.
func cardDouble(commands []cudaapi.Command, byHand map[string]bool) []byte {
	var b bytes.Buffer
	b.WriteString(generated)
	for _, c := range commands {
		if byHand[c.Symbol] {
			continue
		}
		if len(unions(c)) == 0 {
			doubleFunction(&b, c, c.Symbol, "")
			continue
		}
		doubleUnion(&b, c)
	}
	return b.Bytes()
}

// unions returns the parameters of a command that are unions.
func unions(c cudaapi.Command) (all []cudaapi.Arg) {
	for _, a := range slices.Concat(c.Args, c.Outs) {
		if a.Layout != nil && a.Layout.Union {
			all = append(all, a)
		}
	}
	return all
}

// cases returns the values of the parameter that selects a union's member; only 0
// if there is none.
func cases(c cudaapi.Command) []int {
	if u := unions(c); len(u) > 0 {
		return u[0].Layout.Cases()
	}
	return []int{0}
}

// doubleUnion writes a function for each case, and one that selects among them.
func doubleUnion(b *bytes.Buffer, c cudaapi.Command) {
	u := unions(c)[0]
	for _, of := range cases(c) {
		doubleFunction(b, c, fmt.Sprintf("%s_%d", c.Symbol, of), fmt.Sprint(of))
	}
	var params, names []string
	for _, p := range c.Params {
		params, names = append(params, cParameter(c, p.Name)), append(names, p.Name)
	}
	fmt.Fprintf(b, "EXPORT int %s(%s) {\n\tswitch (%s) {\n", c.Symbol, strings.Join(params, ", "), u.Tag.Name)
	for _, of := range cases(c) {
		fmt.Fprintf(b, "\tcase %d: return %s_%d(%s);\n", of, c.Symbol, of, strings.Join(names, ", "))
	}
	b.WriteString("\t}\n\treturn 1;\n}\n")
}

// doubleFunction writes a function under a name; of is the case of a union.
func doubleFunction(b *bytes.Buffer, c cudaapi.Command, name, of string) {
	var params, text, words []string
	var results string
	say := func(what, value string) {
		text, words = append(text, " "+what+"=%llu"), append(words, ", W("+value+")")
	}
	next := firstResult
	for _, p := range c.Params {
		params = append(params, cParameter(c, p.Name))
		if i := slices.IndexFunc(c.Results, func(r cudaapi.Arg) bool { return r.Name == p.Name }); i >= 0 {
			results += fmt.Sprintf("\t*%s = %d;\n", p.Name, firstResult+i)
			next = max(next, firstResult+i+1)
			continue
		}
		a, in := find(c.Args, p.Name)
		switch {
		case in && a.Layout != nil:
			for _, e := range elements(a.Layout, of) {
				say(p.Name+"."+e.path, fmt.Sprintf("M(%s, %s, %d)", e.c(), p.Name, e.offset))
			}
		case in && a.Elements.Max > 0:
			for i := range a.Elements.Max {
				say(fmt.Sprintf("%s[%d]", p.Name, i), fmt.Sprintf("%s[%d]", p.Name, i))
			}
		case in:
			say(p.Name, p.Name)
		}
	}
	for _, o := range c.Outs {
		for _, e := range elements(o.Layout, of) {
			results += fmt.Sprintf("\tM(%s, %s, %d) = (%s)%d;\n", e.c(), o.Name, e.offset, e.c(), next)
			next++
		}
	}
	if len(params) == 0 {
		params = []string{"void"}
	}
	export := "EXPORT"
	if name != c.Symbol {
		export = "static"
	}
	fmt.Fprintf(b, "%s int %s(%s) {\n\tNEEDS_CONTEXT;\n\tPLAY(%s);\n\tCALLED(\"%s%s\"%s);\n%s\treturn 0;\n}\n",
		export, name, strings.Join(params, ", "), c.Symbol, c.Symbol, strings.Join(text, ""), strings.Join(words, ""), results)
}

// one is a number in a struct.
type one struct {
	cudaapi.Member
	path   string // in C, with the index
	field  string // in Go
	offset int
}

func (o one) c() string { kind, _ := o.Go(); return cTypes[kind] }

// elements returns the numbers of a struct, or of a case of a union.
func elements(l *cudaapi.Layout, of string) (all []one) {
	n := 0
	if l.Union {
		n, _ = strconv.Atoi(of)
	}
	for _, m := range l.Passed(n) {
		_, size := m.Go()
		if m.Count == 0 {
			all = append(all, one{m, m.Path, m.Field(), m.Offset})
		}
		for i := range m.Count {
			index := fmt.Sprintf("[%d]", i)
			all = append(all, one{m, m.Path + index, m.Field() + index, m.Offset + i*size})
		}
	}
	return all
}

// These numbers can be distinguished by a test.
const (
	firstArgument = 101
	firstResult   = 1001
)

func find(list []cudaapi.Arg, name string) (cudaapi.Arg, bool) {
	for _, a := range list {
		if a.Name == name {
			return a, true
		}
	}
	return cudaapi.Arg{}, false
}

// cTypes are the types of the double; handles are words.
var cTypes = map[string]string{
	"": "u", "uint8": "uint8_t", "uint16": "uint16_t", "int32": "int32_t", "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float",
}

func cParameter(c cudaapi.Command, name string) string {
	if r, ok := find(c.Results, name); ok {
		return cTypes[r.Go] + " *" + name
	}
	a, in := find(c.Args, name)
	if _, out := find(c.Outs, name); out {
		return "void *" + name
	}
	switch {
	case in && a.Layout != nil:
		return "const void *" + name
	case in && a.Elements.Max > 0:
		return "const " + cTypes[a.Go] + " *" + name
	}
	return cTypes[a.Go] + " " + name
}
