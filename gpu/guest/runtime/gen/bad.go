package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The types of parameters that are neither pointers nor handles.
var (
	numbers = []string{
		"int", "unsigned int", "size_t", "unsigned long long", "cudaTextureObject_t", "cudaSurfaceObject_t",
		"cudaGraphConditionalHandle", "cudaLaunchAttributeID", "cudaLogIterator", "cudaError_t",
	}
	structs   = []string{"dim3", "cudaIpcMemHandle_t", "cudaIpcEventHandle_t"}
	callbacks = []string{"cudaHostFn_t", "cudaStreamCallback_t", "cudaAsyncCallback", "cudaLogsCallback_t"}
)

// bad returns the parameter's argument in the call with zeros and in the call with invalid
// arguments.
func (p param) bad() (nothing, rubbish string) {
	switch {
	case strings.HasSuffix(p.typ, "*"):
		return "0", "scratch()"
	case slices.Contains(structs, p.typ) || strings.HasPrefix(p.typ, "struct "):
		return "(" + p.typ + "){0}", "(" + p.typ + "){0}"
	case slices.Contains(numbers, p.typ) || strings.HasPrefix(p.typ, "enum "):
		return "0", "(" + p.typ + ")FEW"
	case slices.Contains(callbacks, p.typ):
		return "0", "(" + p.typ + ")nowhere"
	}
	return "0", "(" + p.typ + ")RUBBISH"
}

// badCalls returns the list of calls of every function with zeros and with invalid arguments,
// for tests.
func badCalls(functions []function) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "/* BAD(name, refused, call with nothing, call with rubbish). */\n")
	for _, f := range functions {
		if f.quiet() {
			continue
		}
		var nothing, rubbish []string
		for _, p := range f.params {
			n, r := p.bad()
			nothing, rubbish = append(nothing, n), append(rubbish, r)
		}
		row := func(name string) string {
			return fmt.Sprintf("BAD(%s, %t, %s(%s), %s(%s))\n", name, f.kind == "refuse", name, strings.Join(nothing, ", "), name, strings.Join(rubbish, ", "))
		}
		text := row(f.name)
		if f.form != "-" {
			text += row(f.name + "_" + f.form)
		}
		guarded(&b, f, text)
	}
	return b.Bytes()
}
