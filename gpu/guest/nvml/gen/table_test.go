package main

import (
	"os"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const types = "handle nvmlDevice_t = nvmlDevice_st\nenum nvmlMode_t\nstruct nvmlInfo_t 12 v1:8 v2:12\n"
	got, err := parse(types + "# a comment\n\nnvmlA(nvmlDevice_t device, nvmlInfo_t *info, unsigned int *list?) refuse later\nnvmlB(void) own\n" +
		"nvmlC(nvmlDevice_t device, nvmlInfo_t *info, unsigned int *list) as nvmlA\n")
	if err != nil {
		t.Fatal(err)
	}
	a, c := got.by["nvmlA"], got.by["nvmlC"]
	if !a.later || !a.params[2].optional || a.params[1].optional || got.last(c) != a || a.prototype() != "nvmlReturn_t nvmlA(nvmlDevice_t device, nvmlInfo_t *info, unsigned int *list)" {
		t.Errorf("nvmlA = %+v, prototype %q, and nvmlC calls %s; want nvmlA later, with only its list optional, and called by nvmlC", a, a.prototype(), got.last(c).name)
	}
	if y := got.versioned(a.params[1]); y == nil || len(y.versions) != 2 || y.versions[1].word() != 0x200000c {
		t.Errorf("struct of nvmlA = %+v, want versions of 8 and 12 bytes", y)
	}
	for text, want := range map[string]string{
		"nonsense":                               "functions.txt:4: \"nonsense\" is neither a type nor a function",
		"nvmlA(int) own":                         "has no name",
		"nvmlA(nvmlX_t x) own":                   "there is no type",
		"nvmlA(int x?) own":                      "is not a pointer",
		"nvmlA(void) own\nnvmlA(void) own":       "listed twice",
		"enum nvmlMode_t":                        "listed twice",
		"nvmlA(void) as":                         "a function name must follow as",
		"nvmlA(void) own nvmlB":                  "a function name must follow as",
		"nvmlA(void) as nvmlB":                   "must have the same parameters",
		"struct nvmlY_t":                         "want",
		"handle nvmlY_t 8":                       "want",
		"nvmlA(int x) own\nnvmlB(void) as nvmlA": "must have the same parameters",
	} {
		if _, err := parse(types + text + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parse of %q: error %v, want %q", text, err, want)
		}
	}
}

// TestTable checks that functions.txt has all functions of driver 550, and the functions that
// programs look up without checking the result.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("../functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	old := 0
	for _, f := range got.functions {
		if !f.later {
			old++
		}
	}
	if old < 352 {
		t.Errorf("functions.txt has %d functions of driver 550, want at least 352", old)
	}
	for _, name := range []string{"nvmlInit_v2", "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetGpuFabricInfoV", "nvmlGetBlacklistDeviceCount", "nvmlInternalGetExportTable"} {
		if got.by[name] == nil {
			t.Errorf("functions.txt has no row for %s, want one: programs look it up without checking", name)
		}
	}
}
