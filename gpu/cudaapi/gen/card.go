package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

const card = "../cuda"

var method = regexp.MustCompile(`(?m)^func \(c \*context\) (\w+)\(`)

// methods returns the methods of gpu/cuda's context that are written by hand.
func methods() (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(card, "*.go"))
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, f := range files {
		if strings.HasSuffix(f, "_gen.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, m := range method.FindAllSubmatch(text, -1) {
			all[string(m[1])] = true
		}
	}
	return all, nil
}

var functionConstant = regexp.MustCompile(`(?m)^\t(cu[A-Z]\w*)\b`)

// called returns the functions of libcuda that gpu/cuda also calls itself.
func called() (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Join(card, "library.go"))
	all := map[string]bool{}
	for _, m := range functionConstant.FindAllSubmatch(text, -1) {
		all[string(m[1])] = true
	}
	return all, err
}

// cardCalls returns the source of the methods that pass commands on to libcuda.
func cardCalls(commands []cudaapi.Command) ([]byte, error) {
	byItself, err := called()
	if err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(slices.Clone(commands), func(c cudaapi.Command) bool { return byItself[constant(c)] })
	var b bytes.Buffer
	p := func(f string, a ...any) { fmt.Fprintf(&b, f, a...) }
	p("%spackage cuda\n\nimport (\n\"github.com/basalt-gpu/basalt/gpu/abi\"\n\"github.com/basalt-gpu/basalt/gpu/worker\"\n)\n\n", generatedGo)
	p("// The functions that are passed on, after those that this package calls itself.\nconst (\n")
	next := " = firstPassedOn + iota"
	for _, c := range fresh {
		p("%s%s\n", constant(c), next)
		next = ""
	}
	p("functionCount%s\n)\n\n// passedOn has the symbols of the functions that are passed on.\nvar passedOn = [...]string{\n", next)
	for _, c := range fresh {
		p("%q,\n", c.Symbol)
	}
	p("}\n")
	for _, c := range commands {
		cardCall(p, c)
	}
	return format.Source(b.Bytes())
}

// constant returns a function's constant in gpu/cuda: its symbol without the
// version.
func constant(c cudaapi.Command) string { return "cu" + c.Name }

func cardCall(p func(string, ...any), c cudaapi.Command) {
	zero := zeros(c)
	p("\n// %s implements worker.Context.\nfunc (c *context) %s {\n", c.Name, signature(c, "worker."))
	for _, a := range c.Args {
		switch {
		case a.Handle == "stream" && !c.Stream:
			p("%sObject, err := c.streamOf(%s)\nif err != nil {\nreturn %serr\n}\n", goName(a), goName(a), zero)
		case a.Handle == "" || a.Handle == "context" || a.Handle == "stream":
		default:
			p("%sObject, ok := %s.(*%s)\nif !ok {\nreturn %sabi.ErrInvalidHandle\n}\n", goName(a), goName(a), cardType(a.Handle), zero)
		}
	}
	for _, a := range c.Args {
		if a.Bytes > 0 {
			p("if err := c.check(%s, %d); err != nil {\nreturn %serr\n}\n", goName(a), a.Bytes, zero)
		}
	}
	cardMemory(p, c, zero)
	call := fmt.Sprintf("c.passOn(%s)", strings.Join(cardArguments(c), ", "))
	switch {
	case c.Stream:
		p("return c.push(%s, &op{done: done, submit: func(cu uintptr) error { return %s }})\n}\n", goName(c.Args[0]), call)
	case len(returned(c)) == 0:
		p("return %s\n}\n", call)
	default:
		p("if err := %s; err != nil {\nreturn %serr\n}\nreturn ", call, zero)
		for i := range c.Results {
			p("*value%d.value, ", i)
		}
		for _, o := range c.Outs {
			p("abi.Decode%s(%s[abi.%sWire]byte(%sMemory.bytes)), ", o.Layout.Name(), memoryTag(o), o.Layout.Name(), goName(o))
		}
		p("nil\n}\n")
	}
}

// cardMemory declares the values that pointers point to: results, structs in C's
// layout, arrays.
func cardMemory(p func(string, ...any), c cudaapi.Command, zero string) {
	for i, r := range c.Results {
		p("value%d := newOut[%s]()\ndefer value%d.free()\n", i, r.Go, i)
	}
	made := map[string]bool{}
	for _, a := range c.Args {
		if !a.Pointer() {
			continue
		}
		made[a.Name] = true
		if a.Layout == nil {
			p("%sMemory := newOut[%s]()\ndefer %sMemory.free()\n*%sMemory.value = %s\n", goName(a), a.As(), goName(a), goName(a), goName(a))
			continue
		}
		for _, m := range a.Layout.Members {
			switch {
			case m.Touch != "":
				n := cudaapi.Member{Path: m.Touch}.Field()
				p("if err := c.check(%s.%s, %s.%s); err != nil {\nreturn %serr\n}\n", goName(a), m.Field(), goName(a), n, zero)
			case m.Device:
				p("%s.%s = int32(c.d.device)\n", goName(a), m.Field())
			}
		}
		p("%sBytes := %s.Bytes()\n%sMemory := newStruct(%sBytes[:])\ndefer %sMemory.free()\n", goName(a), goName(a), goName(a), goName(a), goName(a))
	}
	for _, o := range c.Outs {
		if !made[o.Name] {
			p("%sMemory := newStruct(make([]byte, abi.%sWire))\ndefer %sMemory.free()\n", goName(o), o.Layout.Name(), goName(o))
		}
	}
}

func memoryTag(a cudaapi.Arg) string {
	if a.Layout.Union {
		return goName(*a.Tag) + ", "
	}
	return ""
}

func cardType(handle string) string {
	if handle == "function" {
		return "kernel"
	}
	return handle
}

// cardArguments returns the words that are passed to libcuda, in the order of its
// parameters.
func cardArguments(c cudaapi.Command) (all []string) {
	all = append(all, constant(c))
	for _, p := range c.Params {
		all = append(all, cardArgument(c, p.Name))
	}
	return all
}

func cardArgument(c cudaapi.Command, name string) string {
	for i, r := range c.Results {
		if r.Name == name {
			return fmt.Sprintf("value%d.at()", i)
		}
	}
	for _, a := range slices.Concat(c.Args, c.Outs) {
		switch {
		case a.Name != name:
		case a.Pointer():
			return goName(a) + "Memory.at()"
		case a.Handle == "context":
			return "c.handle"
		case a.Handle == "stream" && c.Stream:
			return "cu"
		case a.Handle != "":
			return goName(a) + "Object.handle"
		case a.Go == "int32":
			return "uintptr(uint32(" + goName(a) + "))"
		default:
			return "uintptr(" + goName(a) + ")"
		}
	}
	return "0"
}
