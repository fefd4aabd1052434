package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

// Every function of the API that is not refused is called with valid arguments by a
// test: one of the C program api, or a call sequence. every_function calls all functions
// with invalid arguments, and checks that the refused ones return their error.
func TestEveryFunctionHasAGoodCall(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "cudaapi", "functions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := cudaapi.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	called := calledByTests(t)
	for _, f := range table.Functions {
		switch f.Implementation {
		case cudaapi.Own, cudaapi.Call:
		case cudaapi.As:
			if table.Function(f.Target).Implementation == cudaapi.Refuse {
				continue
			}
		default: // refused, or derived from another function for per-thread default streams
			continue
		}
		if !called[f.Symbol] {
			t.Errorf("no test calls %s with valid arguments: add a call to gpu/guest/test/good.c", f.Symbol)
		}
	}
}

// calledByTests returns the undefined symbols of the objects of api, without the generated
// calls with invalid arguments, and the function names in the call sequences.
func calledByTests(t *testing.T) map[string]bool {
	t.Helper()
	called := map[string]bool{"cuGetProcAddress_v2": true} // the player itself calls it
	objects, err := filepath.Glob(object("test/*.o"))
	if err != nil || len(objects) < 10 {
		t.Fatalf("%d objects of the test program were built, want at least 10: %v, %v", len(objects), objects, err)
	}
	for _, path := range objects {
		if filepath.Base(path) == "every_function_gen.o" {
			continue
		}
		out, err := exec.Command("nm", "-u", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(string(out)) {
			called[word] = true
		}
	}
	_, sequences := sequenceFiles(t)
	for _, path := range sequences {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			called[name] = true
		}
	}
	return called
}
