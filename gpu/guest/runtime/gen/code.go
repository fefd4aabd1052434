package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// guard returns the preprocessor condition for the versions that have the function, or "" if
// all have it.
func (f function) guard() string {
	if f.from == 11 && f.to == 13 {
		return ""
	}
	return fmt.Sprintf("#if CUDART_MAJOR >= %d && CUDART_MAJOR <= %d\n", f.from, f.to)
}

// guarded writes body within the guard of f.
func guarded(b *bytes.Buffer, f function, body string) {
	g := f.guard()
	b.WriteString(g)
	b.WriteString(body)
	if g != "" {
		b.WriteString("#endif\n")
	}
}

// prototype returns the C declaration of the function with a suffix to its name.
func (f function) prototype(suffix string) string {
	return param{typ: f.ret, name: f.name + suffix}.String() + "(" + join(f.params) + ")"
}

// flagged reports whether the function in src/ has an additional argument for the per-thread
// form. It needs one if it has no stream parameter.
func (f function) flagged() bool {
	return f.form == "ptds" || f.form == "ptsz" && !slices.ContainsFunc(f.params, func(p param) bool { return p.typ == "cudaStream_t" })
}

// own reports whether the function is written by hand.
func (f function) own() bool { return strings.HasPrefix(f.kind, "own") }

// quiet reports whether the result of a function is not stored as the thread's last error.
func (f function) quiet() bool {
	return f.ret != "cudaError_t" || f.name == "cudaGetLastError" || f.name == "cudaPeekAtLastError"
}

// arguments returns the arguments that pass on the function's parameters. In the per-thread
// form, stream 0 is replaced by the thread's stream.
func (f function) arguments(perThread bool) string {
	var all []string
	for _, p := range f.params {
		if perThread && f.form == "ptsz" && p.typ == "cudaStream_t" {
			all = append(all, "own_stream("+p.name+")")
		} else {
			all = append(all, p.name)
		}
	}
	if f.flagged() {
		all = append(all, map[bool]string{false: "false", true: "true"}[perThread])
	}
	return strings.Join(all, ", ")
}

// driverCall returns the call of the driver, with streams replaced for the per-thread form.
func (f function) driverCall(perThread bool) string {
	name, args, _ := strings.Cut(f.call, "(")
	if perThread {
		for _, p := range f.params {
			if p.typ == "cudaStream_t" {
				args = strings.ReplaceAll(args, " "+p.name, " own_stream("+p.name+")")
				if strings.HasPrefix(args, p.name) {
					args = "own_stream(" + p.name + ")" + strings.TrimPrefix(args, p.name)
				}
			}
		}
	}
	return "call_" + name + "(" + args
}

// body returns the statements of the exported function.
func (f function) body(perThread bool) string {
	switch {
	case f.quiet():
		return "\treturn own_" + f.name + "(" + f.arguments(perThread) + ");\n"
	case f.kind == "own-early":
		return "\treturn finish(own_" + f.name + "(" + f.arguments(perThread) + "));\n"
	case f.kind == "own":
		return "\tcudaError_t err = enter();\n\n\treturn finish(err ? err : own_" + f.name + "(" + f.arguments(perThread) + "));\n"
	case f.kind == "call":
		return "\tcudaError_t err = enter();\n\n\treturn finish(err ? err : from_driver(" + f.driverCall(perThread) + "));\n"
	case f.kind == "plain":
		return "\tcudaError_t err = driver_open();\n\n\treturn finish(err ? err : from_driver(" + f.driverCall(perThread) + "));\n"
	}
	var b strings.Builder
	for _, p := range f.params {
		b.WriteString("\t(void)" + p.name + ";\n")
	}
	return b.String() + "\treturn finish(cudaErrorNotSupported);\n"
}

// stubs returns src/stubs.c, the exported functions.
func stubs(functions []function) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "#include \"own.h\"\n#include \"driver_calls.h\"\n#include \"runtime.h\"\n\n")
	for _, f := range functions {
		text := f.prototype("") + "\n{\n" + f.body(false) + "}\n"
		if f.form != "-" {
			text += f.prototype("_"+f.form) + "\n{\n" + f.body(true) + "}\n"
		}
		guarded(&b, f, text)
	}
	return b.Bytes()
}

// ownHeader returns src/own.h, the declarations of the functions that are written by hand.
func ownHeader(functions []function) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "#ifndef OWN_H\n#define OWN_H\n#include <stdbool.h>\n\n#include \"cuda_runtime_api.h\"\n\n")
	for _, f := range functions {
		if !f.own() {
			continue
		}
		params := f.params
		if f.flagged() {
			params = append(append([]param{}, params...), param{typ: "bool", name: "per_thread"})
		}
		guarded(&b, f, param{typ: f.ret, name: "own_" + f.name}.String()+"("+join(params)+");\n")
	}
	b.WriteString("#endif\n")
	return b.Bytes()
}

// driverCalls returns src/driver_calls.h, one inline function for each function of the driver.
func driverCalls(driver []driverFunction) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "#ifndef DRIVER_CALLS_H\n#define DRIVER_CALLS_H\n#include \"driver.h\"\n\nenum {\n")
	for _, d := range driver {
		b.WriteString("\tDRIVER_" + d.name + ",\n")
	}
	b.WriteString("\tDRIVER_COUNT\n};\n\n")
	for _, d := range driver {
		var types, names []string
		for _, p := range d.params {
			types = append(types, p.typ)
			names = append(names, p.name)
		}
		list := strings.Join(types, ", ")
		if list == "" {
			list = "void"
		}
		fmt.Fprintf(&b, "static inline int call_%s(%s)\n{\n\tdriver_function call = driver_find(DRIVER_%s);\n\n\treturn call ? ((int (*)(%s))call)(%s) : CUDA_ERROR_NOT_SUPPORTED;\n}\n",
			d.name, join(d.params), d.name, list, strings.Join(names, ", "))
	}
	b.WriteString("#endif\n")
	return b.Bytes()
}

// driverNames returns src/driver_names.c, the names of the driver's functions.
func driverNames(driver []driverFunction) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "#include \"driver_calls.h\"\n\nconst char *const driver_names[DRIVER_COUNT] = {\n")
	for _, d := range driver {
		fmt.Fprintf(&b, "\t%q,\n", d.name)
	}
	b.WriteString("};\ndriver_function driver_found[DRIVER_COUNT];\nconst unsigned int driver_count = DRIVER_COUNT;\n")
	return b.Bytes()
}

// errorTable returns src/error_table.c, the names and texts of the errors.
func errorTable(errors []errorRow) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "#include \"error.h\"\n\nconst struct error_row error_rows[] = {\n")
	for _, e := range errors {
		fmt.Fprintf(&b, "\t{%d, %q, %q},\n", e.code, e.name, e.text)
	}
	fmt.Fprintf(&b, "};\nconst unsigned int error_row_count = %d;\n", len(errors))
	return b.Bytes()
}

// errorHeader returns include/basalt_cudart_errors.h, the error codes.
func errorHeader(errors []errorRow) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "#ifndef BASALT_CUDART_ERRORS_H\n#define BASALT_CUDART_ERRORS_H\n\nenum cudaError {\n")
	for _, e := range errors {
		fmt.Fprintf(&b, "\t%s = %d,\n", e.name, e.code)
	}
	b.WriteString("};\ntypedef enum cudaError cudaError_t;\n\n#endif\n")
	return b.Bytes()
}

// declaration returns the C declaration of the field.
func (f field) declaration() string {
	if f.count > 1 {
		return fmt.Sprintf("\t%s %s[%d];\n", f.typ, f.name, f.count)
	}
	return fmt.Sprintf("\t%s %s;\n", f.typ, f.name)
}

// propertiesHeader returns include/basalt_cudart_properties.h, the structure of each version.
func propertiesHeader(fields []field) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "#ifndef BASALT_CUDART_PROPERTIES_H\n#define BASALT_CUDART_PROPERTIES_H\n\n")
	for _, major := range []int{11, 12, 13} {
		fmt.Fprintf(&b, "#if CUDART_MAJOR == %d\nstruct cudaDeviceProp {\n", major)
		for _, f := range fields {
			if f.in(major) {
				b.WriteString(f.declaration())
			}
		}
		b.WriteString("};\n#endif\n")
	}
	b.WriteString("\n#endif\n")
	return b.Bytes()
}

// propertiesFill returns src/properties_fill.c, which has a structure and a function that
// fills it for each layout.
func propertiesFill(fields []field) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "#include <string.h>\n\n#include \"properties.h\"\n")
	for _, major := range []int{11, 12, 13} {
		fmt.Fprintf(&b, "\nstruct layout_%d {\n", major)
		for _, f := range fields {
			if f.in(major) {
				b.WriteString(f.declaration())
			}
		}
		fmt.Fprintf(&b, "};\n\ncudaError_t properties_%d(void *out, int device)\n{\n\tstruct layout_%d *p = out;\n\tcudaError_t err;\n\n", major, major)
		b.WriteString("\tmemset(p, 0, sizeof *p);\n\tif ((err = identity(p->name, &p->uuid, p->luid, &p->luidDeviceNodeMask, &p->totalGlobalMem, device)) != 0)\n\t\treturn err;\n")
		for _, f := range fields {
			for i, a := range f.attributes {
				if !f.in(major) {
					continue
				}
				index := ""
				if f.count > 1 {
					index = fmt.Sprintf("[%d]", i)
				}
				fmt.Fprintf(&b, "\tp->%s%s = (%s)attribute(%s, device);\n", f.name, index, f.typ, a)
			}
		}
		b.WriteString("\treturn cudaSuccess;\n}\n")
	}
	return b.Bytes()
}

// declaration returns the prototype for programs, with C++'s default values.
func (f function) declaration(suffix string) string {
	params := slices.Clone(f.params)
	for i, p := range params {
		if p.value != "" {
			params[i].name += " BASALT_OR(" + p.value + ")"
		}
	}
	return "CUDARTAPI " + param{typ: f.ret, name: f.name + suffix}.String() + "(" + join(params) + ");\n"
}

// publicHeader returns include/basalt_cudart_functions.h, the prototypes for programs.
func publicHeader(functions []function) []byte {
	var b, names bytes.Buffer
	b.WriteString(notice + "#ifndef BASALT_CUDART_FUNCTIONS_H\n#define BASALT_CUDART_FUNCTIONS_H\n\n#ifdef __cplusplus\n#define BASALT_OR(value) = value\nextern \"C\" {\n#else\n#define BASALT_OR(value)\n#endif\n\n")
	for _, f := range functions {
		text := f.declaration("")
		if f.form != "-" {
			text += f.declaration("_" + f.form)
			guarded(&names, f, fmt.Sprintf("#define %s %s_%s\n", f.name, f.name, f.form))
		}
		guarded(&b, f, text)
	}
	b.WriteString("\n#ifdef __cplusplus\n}\n#endif\n\n/* Programs that ask for per-thread default streams get those forms. */\n#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) && !defined(BASALT_CUDART_IMPLEMENTATION)\n")
	b.Write(names.Bytes())
	b.WriteString("#endif\n\n#endif\n")
	return b.Bytes()
}

// testCalls returns test/calls.h, the exported names, which tests compare with the library.
func testCalls(functions []function) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "/* X(name): every function of the runtime API that the library of CUDART_MAJOR exports. */\n")
	for _, f := range functions {
		text := "X(" + f.name + ")\n"
		if f.form != "-" {
			text += "X(" + f.name + "_" + f.form + ")\n"
		}
		guarded(&b, f, text)
	}
	return b.Bytes()
}

// coverage returns the text of COVERAGE.md.
func coverage(functions []function, driver []driverFunction) []byte {
	var b bytes.Buffer
	count := map[string]int{}
	for _, f := range functions {
		count[f.kind]++
	}
	fmt.Fprintf(&b, "# Coverage of the CUDA runtime API\n\nGenerated by gpu/guest/runtime/gen from table/; do not edit.\n\n%d functions (a signature that differs between major versions counts once for each): %d call one function of the driver, %d are written by hand, %d answer `cudaErrorNotSupported`. They use %d symbols of the driver; where the driver lacks one, the functions that need it answer `cudaErrorNotSupported` too.\n\n",
		len(functions), count["call"]+count["plain"], count["own"]+count["own-early"], count["refuse"], len(driver))
	b.WriteString("| function | libraries | per-thread form | how |\n|---|---|---|---|\n")
	for _, f := range functions {
		how := map[string]string{"own": "by hand", "own-early": "by hand", "refuse": "refused"}[f.kind]
		if name, _, ok := strings.Cut(f.call, "("); ok {
			how = name
		}
		fmt.Fprintf(&b, "| %s | %d to %d | %s | %s |\n", f.name, f.from, f.to, strings.ReplaceAll(f.form, "-", ""), how)
	}
	return b.Bytes()
}
