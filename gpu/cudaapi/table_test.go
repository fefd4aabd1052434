package cudaapi_test

import (
	"os"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
)

func read(t *testing.T) *cudaapi.Table {
	t.Helper()
	text, err := os.ReadFile("functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	table, err := cudaapi.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A real driver answers names for per-thread default streams with symbols of
// their own: the table has them all, with their base's parameters.
func TestPerThreadForms(t *testing.T) {
	table := read(t)
	f, base := table.Function("cuEventRecord_ptsz"), table.Function("cuEventRecord")
	if f == nil || f.How != cudaapi.PerThread || f.Target != "cuEventRecord" || len(f.Params) != len(base.Params) {
		t.Errorf("cuEventRecord_ptsz is %+v", f)
	}
	if got, want := base.Prototype(), "CUresult cuEventRecord(CUevent hEvent, CUstream hStream)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Every type in the table is C's own or one that the table declares.
func TestTypesAreKnown(t *testing.T) {
	table := read(t)
	known := map[string]bool{"void": true, "int": true, "unsigned int": true, "size_t": true, "char": true, "float": true,
		"unsigned char": true, "unsigned short": true, "unsigned long long": true,
		"CUuuid": true, "CUhostFn": true, "CUstreamCallback": true, "CUoccupancyB2DSize": true, "CUasyncCallback": true}
	for _, ty := range table.Types {
		known[ty.Name] = true
	}
	for _, f := range table.Functions {
		for _, p := range f.Params {
			plain := strings.TrimSpace(strings.NewReplacer("const ", "", "*", "").Replace(p.Type))
			if !known[plain] {
				t.Errorf("%s: %s has the type %q, which nothing declares", f.Symbol, p.Name, p.Type)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"cuA", `functions.txt:1: "cuA" is neither`},
		{"cuA 2000=cuA\n\tcuA(int) own", `functions.txt:2: cuA: parameter "int" has no name`},
		{"cuA 2000=cuA", "cuA has no row"},
		{"\tcuA(void) own\n\tcuA(void) own", "functions.txt:2: cuA is there twice"},
		{"\tcuA(void) as cuB", "which has no such parameters"},
		{"\tcuA(void) refuse", "wants one word"},
		{"\tcuA(void) call", "wants a command's number"},
		{"\tcuA(void) call 9 slowly", `"slowly" is neither`},
		{"\tcuA(void) call 9\n\tcuB(void) call 9", "cuA and cuB are both command 9"},
		{"cuA 2000=cuA | 7000=cuA_ptds\n\tcuA(int a) own", "cuA_ptds wants a row of its own"},
	} {
		if _, err := cudaapi.Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
