package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

var exported = regexp.MustCompile(`(?m)^EXPORT int (\w+)\(`)

// doubled are the functions that the double of libcuda has by hand.
func doubled() (map[string]bool, error) {
	text, err := os.ReadFile(card + "/testdata/double.c")
	all := map[string]bool{}
	for _, m := range exported.FindAllSubmatch(text, -1) {
		all[string(m[1])] = true
	}
	return all, err
}

// cardDouble is the double's side of what is passed on: it writes down what it
// got and gives numbers of its own back.
func cardDouble(commands []cudaapi.Command, byHand map[string]bool) []byte {
	var b bytes.Buffer
	b.WriteString(generated)
	for _, c := range commands {
		if byHand[c.Symbol] {
			continue
		}
		var params, text, words []string
		var results string
		for _, p := range c.Params {
			a, i := find(c, p.Name)
			if i >= 0 {
				params = append(params, cType(a)+" *"+p.Name)
				results += fmt.Sprintf("\t*%s = %d;\n", p.Name, firstResult+i)
				continue
			}
			params = append(params, cType(a)+" "+p.Name)
			text, words = append(text, " "+p.Name+"=%llu"), append(words, ", W("+p.Name+")")
		}
		if len(params) == 0 {
			params = []string{"void"}
		}
		fmt.Fprintf(&b, "EXPORT int %s(%s) {\n\tNEEDS_CONTEXT;\n\tPLAY(%s);\n\tCALLED(\"%s%s\"%s);\n%s\treturn 0;\n}\n",
			c.Symbol, strings.Join(params, ", "), c.Symbol, c.Symbol, strings.Join(text, ""), strings.Join(words, ""), results)
	}
	return b.Bytes()
}

// Numbers that a test can tell from each other.
const (
	firstArgument = 101
	firstResult   = 1001
)

// find is the argument or the result of that name; i counts results, and is
// less than 0 for an argument.
func find(c cudaapi.Command, name string) (a cudaapi.Arg, i int) {
	for i, r := range c.Results {
		if r.Name == name {
			return r, i
		}
	}
	for _, a := range c.Args {
		if a.Name == name {
			return a, -1
		}
	}
	return cudaapi.Arg{}, -1
}

// cType is an argument's type in the double; handles are words.
func cType(a cudaapi.Arg) string {
	return map[string]string{"": "u", "int32": "int32_t", "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float"}[a.Go]
}

// cardTest calls everything that is passed on and says what the double must
// have seen.
func cardTest(commands []cudaapi.Command) ([]byte, error) {
	var b bytes.Buffer
	p := func(f string, a ...any) { fmt.Fprintf(&b, f, a...) }
	p("%spackage cuda\n\nimport (\n\"fmt\"\n\n\"github.com/basalt-gpu/basalt/gpu/worker\"\n)\n\nvar passedOnCalls = []passedOnCall{\n", generatedGo)
	for _, c := range commands {
		p("{%q, func(c worker.Context, o objects, done func(error)) (string, bool, error) {\n", c.Symbol)
		var args []string
		seen := map[string]string{}
		for i, a := range c.Args {
			value := fmt.Sprint(firstArgument + i)
			switch {
			case a.Handle != "":
				value = "o." + a.Handle
				seen[a.Name] = "o." + a.Handle + "Handle"
			case a.Type == "CUdeviceptr":
				value = "o.address"
			}
			if seen[a.Name] == "" {
				seen[a.Name] = value
			}
			if a.Handle != "context" {
				args = append(args, value)
			}
		}
		if c.Stream {
			args = append(args, "done")
		}
		results(p, c, strings.Join(args, ", "))
		var text, words []string
		for _, q := range c.Params {
			if seen[q.Name] != "" {
				text, words = append(text, " "+q.Name+"=%d"), append(words, ", "+seen[q.Name])
			}
		}
		if len(words) == 0 {
			p("return %q, good, err\n}},\n", c.Symbol)
		} else {
			p("return fmt.Sprintf(\"%s%s\"%s), good, err\n}},\n", c.Symbol, strings.Join(text, ""), strings.Join(words, ""))
		}
	}
	p("}\n")
	return format.Source(b.Bytes())
}

// results makes the call and compares what came back.
func results(p func(string, ...any), c cudaapi.Command, args string) {
	var names, good []string
	for i := range c.Results {
		names = append(names, fmt.Sprintf("value%d", i))
		good = append(good, fmt.Sprintf("value%d == %d", i, firstResult+i))
	}
	p("%s := c.%s(%s)\n", strings.Join(append(names, "err"), ", "), c.Name, args)
	if len(good) == 0 {
		good = []string{"true"}
	}
	p("good := %s\n", strings.Join(good, " && "))
	if !c.Stream {
		p("done(nil)\n")
	}
}
