package main

import (
	"strings"
	"testing"
)

func TestParseFunction(t *testing.T) {
	f, err := parseFunction("11-12 ptsz call | cudaError_t cudaX(const char *name, cudaStream_t s=0) | cuX(name, s)")
	if err != nil {
		t.Fatal(err)
	}
	if f.from != 11 || f.to != 12 || f.name != "cudaX" || f.call != "cuX(name, s)" || len(f.params) != 2 {
		t.Errorf("parseFunction = %+v, want versions 11 to 12, cudaX, the call cuX(name, s) and 2 parameters", f)
	}
	if got, want := f.prototype("_ptsz"), "cudaError_t cudaX_ptsz(const char *name, cudaStream_t s)"; got != want {
		t.Errorf("prototype = %q, want %q", got, want)
	}
	if got, want := f.declaration(""), "CUDARTAPI cudaError_t cudaX(const char *name, cudaStream_t s BASALT_OR(0));\n"; got != want {
		t.Errorf("declaration = %q, want %q", got, want)
	}
	if got, want := f.driverCall(true), "call_cuX(name, own_stream(s))"; got != want {
		t.Errorf("call of the per-thread form = %q, want %q", got, want)
	}
	const bad = "BAD(cudaX_ptsz, false, cudaX_ptsz(0, 0), cudaX_ptsz(scratch(), (cudaStream_t)RUBBISH))\n"
	if got := string(badCalls([]function{f})); !strings.Contains(got, bad) {
		t.Errorf("bad calls = %q, want %q in them", got, bad)
	}
	if got, want := f.guard(), "#if CUDART_MAJOR >= 11 && CUDART_MAJOR <= 12\n"; got != want {
		t.Errorf("guard = %q, want %q", got, want)
	}
}

func TestWrongRows(t *testing.T) {
	for row, want := range map[string]string{
		"11-13 - call":              "want VERSIONS FORM KIND",
		"new - own | int f(void)":   "versions",
		"11-13 async own | int f()": `form "async" is not known`,
		"11-13 - guess | int f()":   `kind "guess" is not known`,
		"11-13 - own | int f":       "is not a prototype",
		"11-13 - call | int f()":    "a driver call is for the kinds",
	} {
		if _, err := parseFunction(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseFunction(%q): error %v, want %q", row, err, want)
		}
	}
	err := checkCalls([]function{{name: "cudaX", call: "cuY(a)"}}, []driverFunction{{name: "cuX"}})
	if err == nil || !strings.Contains(err.Error(), "cudaX calls cuY") {
		t.Errorf("checkCalls of an unknown driver function: error %v, want %q", err, "cudaX calls cuY")
	}
}
