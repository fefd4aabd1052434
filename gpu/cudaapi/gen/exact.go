package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

// exactCalls returns calls, for the guest's tests, of every function that takes a
// struct or an array: a valid one, and, for each value that the table refuses,
// one in which only that value is invalid.
func exactCalls(commands []cudaapi.Command) []byte {
	e := exact{}
	for _, c := range commands {
		if !pointed(c) {
			continue
		}
		for _, of := range cases(c) {
			e.command(c, of)
		}
	}
	return fmt.Appendf(nil, "%s%s\nconst struct exact_call exact_calls[] = {\n%s\t{NULL, NULL, 0, 0},\n};\n", testHead, e.functions.Bytes(), e.list.Bytes())
}

func pointed(c cudaapi.Command) bool {
	for _, a := range c.Args {
		if a.Pointer() {
			return true
		}
	}
	return len(c.Outs) > 0
}

type exact struct {
	functions, list bytes.Buffer
	calls           int
}

// change is a difference of a call: an argument, or a member of a struct.
type change struct{ name, member, value string }

const invalidValue = "CUDA_ERROR_INVALID_VALUE"

func (e *exact) command(c cudaapi.Command, of int) {
	soft := "0"
	if c.Soft != "" {
		soft = "CUDA_ERROR_" + c.Soft
	}
	e.call(c, of, "0", soft, change{})
	for _, name := range pointers(c) {
		e.call(c, of, invalidValue, invalidValue, change{name: name, value: "NULL"})
	}
	if u := unions(c); len(u) > 0 {
		e.call(c, of, invalidValue, invalidValue, change{name: u[0].Tag.Name, value: "(int)RUBBISH"})
	}
	for _, a := range c.Args {
		switch {
		case a.Layout != nil:
			e.members(c, of, a)
		case a.Elements.Max > 0:
			e.call(c, of, invalidValue, invalidValue, change{name: a.Name, value: "NULL"})
			e.call(c, of, invalidValue, invalidValue, change{name: a.Elements.By, value: fmt.Sprint(a.Elements.Max + a.Elements.Less + 1)})
		case a.Bytes > 0:
			e.call(c, of, invalidValue, invalidValue, change{name: a.Name, value: "scratch()"})
		}
	}
}

func (e *exact) members(c cudaapi.Command, of int, a cudaapi.Arg) {
	for _, m := range a.Layout.Members {
		if a.Layout.Union && m.Case != of {
			continue
		}
		switch {
		case m.Zero:
			e.call(c, of, invalidValue, invalidValue, change{a.Name, m.Path, "one"})
		case m.Only != "":
			e.call(c, of, invalidValue, invalidValue, change{a.Name, m.Path, "(int)RUBBISH"})
		case m.Device:
			e.call(c, of, "CUDA_ERROR_INVALID_DEVICE", "CUDA_ERROR_INVALID_DEVICE", change{a.Name, m.Path, "1"})
		case m.Touch != "":
			e.call(c, of, invalidValue, invalidValue, change{a.Name, m.Path, "scratch()"})
			e.call(c, of, invalidValue, invalidValue, change{a.Name, m.Touch, "1ul << 40"})
		}
	}
}

// call adds a call that returns want, or other on a device without code for it.
func (e *exact) call(c cudaapi.Command, of int, want, other string, x change) {
	e.calls++
	name := fmt.Sprintf("exact_%d_%s", e.calls, c.Symbol)
	b := &e.functions
	fmt.Fprintf(b, "static CUresult %s(void)\n{\n", name)
	var args []string
	for _, p := range c.Params {
		value := x.value
		if x.name != p.Name || x.member != "" {
			value = goodArgument(b, c, p.Name, of, x)
		}
		args = append(args, value)
	}
	fmt.Fprintf(b, "\treturn %s(%s);\n}\n", c.Symbol, strings.Join(args, ", "))
	what := c.Symbol
	if x.name != "" {
		what += strings.TrimSuffix(fmt.Sprintf(" with another %s.%s", x.name, x.member), ".")
	}
	if len(unions(c)) > 0 {
		what += fmt.Sprintf(", case %d", of)
	}
	fmt.Fprintf(&e.list, "\t{%q, %s, %s, %s},\n", what, name, want, other)
}

// goodArgument returns an argument in C, for which it may declare variables.
func goodArgument(b *bytes.Buffer, c cudaapi.Command, name string, of int, x change) string {
	a, in := find(c.Args, name)
	_, out := find(c.Outs, name)
	switch {
	case out && !in:
		return "scratch()"
	case in && a.Layout != nil:
		goodStruct(b, a, of, x)
		return "&" + name + "_"
	case in && a.Elements.Max > 0:
		fmt.Fprintf(b, "\tstatic const %s %s_[%d] = {%s1};\n", a.Type, name, a.Elements.Max, strings.Repeat("1, ", a.Elements.Max-1))
		return name + "_"
	case in && a.Bytes > 0:
		return "(void *)(uintptr_t)good_address()"
	case in && a.Handle == "stream":
		return "NULL"
	case in && a.Handle != "":
		return "good_" + a.Handle + "()"
	}
	if !in {
		return "scratch()"
	}
	for _, u := range unions(c) {
		if u.Tag.Name == name {
			return fmt.Sprint(of)
		}
	}
	for _, n := range c.Counts {
		if n.By == name {
			return "3"
		}
	}
	return "0"
}

func goodStruct(b *bytes.Buffer, a cudaapi.Arg, of int, x change) {
	fmt.Fprintf(b, "\t%s %s_;\n\n\tmemset(&%s_, 0, sizeof %s_);\n", a.Layout.Type, a.Name, a.Name, a.Name)
	if !a.Layout.Union {
		of = 0
	}
	for _, m := range a.Layout.Members {
		if m.Case != of {
			continue
		}
		value := "1"
		switch {
		case m.Touch != "":
			value = "(void *)(uintptr_t)good_address()"
		case m.Only != "":
			value = m.Only
		case m.Zero, m.Unused, m.Device, m.Count > 0:
			value = ""
		}
		if x.name == a.Name && x.member == m.Path {
			value = x.value
		}
		switch {
		case value == "one":
			fmt.Fprintf(b, "\t*(char *)&%s_.%s = 1;\n", a.Name, m.Path)
		case value != "":
			fmt.Fprintf(b, "\t%s_.%s = %s;\n", a.Name, m.Path, value)
		}
	}
}
