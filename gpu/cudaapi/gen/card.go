package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

const card = "../cuda"

var method = regexp.MustCompile(`(?m)^func \(c \*context\) (\w+)\(`)

// methods are those of gpu/cuda's context that are written by hand.
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

// cardCalls passes commands on to libcuda.
func cardCalls(commands []cudaapi.Command) ([]byte, error) {
	var b bytes.Buffer
	p := func(f string, a ...any) { fmt.Fprintf(&b, f, a...) }
	p("%spackage cuda\n\nimport (\n\"github.com/basalt-gpu/basalt/gpu/abi\"\n\"github.com/basalt-gpu/basalt/gpu/worker\"\n)\n\n", generatedGo)
	p("// The functions that are passed on, after those that this package calls by itself.\nconst (\n")
	next := " = firstPassedOn + iota"
	for _, c := range commands {
		p("%s%s\n", constant(c), next)
		next = ""
	}
	p("functionCount%s\n)\n\n// passedOn has their symbols.\nvar passedOn = [...]string{\n", next)
	for _, c := range commands {
		p("%q,\n", c.Symbol)
	}
	p("}\n")
	for _, c := range commands {
		cardCall(p, c)
	}
	return format.Source(b.Bytes())
}

// constant is a function's constant in gpu/cuda: its symbol without the version.
func constant(c cudaapi.Command) string { return "cu" + c.Name }

func cardCall(p func(string, ...any), c cudaapi.Command) {
	zero := strings.Repeat("0, ", len(c.Results))
	p("\n// %s implements worker.Context.\nfunc (c *context) %s {\n", c.Name, signature(c, "worker."))
	for _, a := range c.Args {
		switch a.Handle {
		case "", "context", "stream":
		default:
			p("%sObject, ok := %s.(*%s)\nif !ok {\nreturn %sabi.ErrInvalidHandle\n}\n", goName(a), goName(a), cardType(a.Handle), zero)
		}
	}
	for _, a := range c.Args {
		if a.Bytes > 0 {
			p("if err := c.check(%s, %d); err != nil {\nreturn %serr\n}\n", goName(a), a.Bytes, zero)
		}
	}
	for i, r := range c.Results {
		p("value%d := newOut[%s]()\ndefer value%d.free()\n", i, r.Go, i)
	}
	call := fmt.Sprintf("c.passOn(%s)", strings.Join(cardArguments(c), ", "))
	switch {
	case c.Stream:
		p("return c.push(%s, &op{done: done, submit: func(cu uintptr) error { return %s }})\n}\n", goName(c.Args[0]), call)
	case len(c.Results) == 0:
		p("return %s\n}\n", call)
	default:
		p("err := %s\nreturn ", call)
		for i := range c.Results {
			p("*value%d.value, ", i)
		}
		p("err\n}\n")
	}
}

func cardType(handle string) string {
	if handle == "function" {
		return "kernel"
	}
	return handle
}

// cardArguments are the words that libcuda gets, in the order of its parameters.
func cardArguments(c cudaapi.Command) (all []string) {
	all = append(all, constant(c))
	for _, p := range c.Params {
		for i, r := range c.Results {
			if r.Name == p.Name {
				all = append(all, fmt.Sprintf("value%d.at()", i))
			}
		}
		for _, a := range c.Args {
			switch {
			case a.Name != p.Name:
			case a.Handle == "context":
				all = append(all, "c.handle")
			case a.Handle == "stream" && c.Stream:
				all = append(all, "cu")
			case a.Handle != "":
				all = append(all, goName(a)+"Object.handle")
			case a.Go == "int32":
				all = append(all, "uintptr(uint32("+goName(a)+"))")
			default:
				all = append(all, "uintptr("+goName(a)+")")
			}
		}
	}
	return all
}
