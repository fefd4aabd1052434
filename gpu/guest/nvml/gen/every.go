package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// every calls each function with nothing, with rubbish, and with arguments that are
// right where it is refused, and has what those answer.
func every(t *table) []byte {
	var calls, list bytes.Buffer
	for _, f := range t.functions {
		if f.name == "nvmlErrorString" { // it returns no nvmlReturn_t
			continue
		}
		for _, form := range []string{"nothing", "rubbish", "good"} {
			fmt.Fprintf(&calls, "static nvmlReturn_t %s_%s(void) { return %s(%s); }\n", form, f.name, f.name, arguments(t, f, form))
		}
		refused, want, rubbish := t.last(f), "-1", "-1"
		if refused.how != own {
			want, rubbish = result(refused), result(refused)
			if slices.ContainsFunc(f.params, func(p param) bool { return noSuch[p.typ] }) {
				want, rubbish = "NVML_ERROR_INVALID_ARGUMENT", "NVML_ERROR_INVALID_ARGUMENT"
			}
			for _, p := range slices.Backward(f.params) { // the first that is wrong counts
				switch {
				case p.typ == "nvmlDevice_t" || noSuch[p.typ]:
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

// nothing is what a function that is refused answers to zeros.
func nothing(f, refused *function) string {
	switch {
	case refused.how == own:
		return "-1"
	case slices.ContainsFunc(f.params, func(p param) bool {
		return p.typ == "nvmlDevice_t" || noSuch[p.typ] || p.pointer() && !p.optional
	}):
		return "NVML_ERROR_INVALID_ARGUMENT"
	}
	return result(refused)
}

func arguments(t *table, f *function, form string) string {
	var all []string
	for _, p := range f.params {
		all = append(all, argument(t, p, form))
	}
	return strings.Join(all, ", ")
}

// argument is C: a zero, something that is no object, or something right. Pointers lead
// to scratch memory then, whose first word is a version where there is one.
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
