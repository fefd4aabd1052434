package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// every returns the test's table. It has for each function a call with zeros, one with
// invalid arguments and, for a function that is refused, one with valid arguments, and the
// expected result of each (-1: any).
func every(t *table) []byte {
	var calls, list bytes.Buffer
	for _, f := range t.functions {
		if f.name == "nvmlErrorString" { // it does not return an nvmlReturn_t
			continue
		}
		for _, form := range []string{"nothing", "rubbish", "good"} {
			fmt.Fprintf(&calls, "static nvmlReturn_t %s_%s(void) { return %s(%s); }\n", form, f.name, f.name, arguments(t, f, form))
		}
		refused, want, rubbish := t.last(f), "-1", "-1"
		if refused.how != own {
			want, rubbish = result(refused), result(refused)
			if slices.ContainsFunc(f.params, func(p param) bool { return absentHandles[p.typ] }) {
				want, rubbish = "NVML_ERROR_INVALID_ARGUMENT", "NVML_ERROR_INVALID_ARGUMENT"
			}
			for _, p := range slices.Backward(f.params) { // the first invalid one determines the error
				switch {
				case p.typ == "nvmlDevice_t" || absentHandles[p.typ]:
					rubbish = "NVML_ERROR_INVALID_ARGUMENT"
				case t.versioned(p) != nil && !p.optional:
					rubbish = "NVML_ERROR_ARGUMENT_VERSION_MISMATCH"
				}
			}
		}
		fmt.Fprintf(&list, "\t{%q, nothing_%s, rubbish_%s, good_%s, %s, %s, %s},\n", f.name, f.name, f.name, f.name, nothing(f, refused), rubbish, want)
	}
	return slices.Concat([]byte(generated+"#include \"nvml_every.h\"\n\n"), calls.Bytes(),
		[]byte("\nconst struct every every[] = {\n"), list.Bytes(), []byte("\t{0},\n};\n"))
}

// nothing returns the result of a refused function that is called with zeros.
func nothing(f, refused *function) string {
	switch {
	case refused.how == own:
		return "-1"
	case slices.ContainsFunc(f.params, func(p param) bool {
		return p.typ == "nvmlDevice_t" || absentHandles[p.typ] || p.pointer() && !p.optional
	}):
		return "NVML_ERROR_INVALID_ARGUMENT"
	}
	return result(refused)
}

// arguments returns the arguments of a call in C.
func arguments(t *table, f *function, form string) string {
	var all []string
	for _, p := range f.params {
		all = append(all, argument(t, p, form))
	}
	return strings.Join(all, ", ")
}

// argument returns an argument in C. form selects zero ("nothing"), an invalid value
// ("rubbish") or a valid one ("good"). Pointers point to scratch memory; for a valid struct
// with versions, its first word is the newest version.
func argument(t *table, p param, form string) string {
	y := t.versioned(p)
	switch {
	case form == "nothing":
		return "0"
	case p.typ == "nvmlDevice_t" && form == "good":
		return "the_device"
	case t.typeOf[p.typ] != nil && t.typeOf[p.typ].kind == handle:
		return "(" + p.typ + ")RUBBISH"
	case p.typ == "const char *":
		return "\"rubbish\""
	case p.pointer() && form == "good" && y != nil:
		return fmt.Sprintf("scratch(%#xu)", y.versions[len(y.versions)-1].word())
	case p.pointer():
		return "scratch(0)"
	case form == "rubbish":
		return "(" + p.typ + ")RUBBISH"
	}
	return "1"
}
