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

// A real driver returns separate symbols for names with per-thread default
// streams: the table has all of them, with the parameters of the base symbol.
func TestPerThreadForms(t *testing.T) {
	table := read(t)
	f, base := table.Function("cuEventRecord_ptsz"), table.Function("cuEventRecord")
	if f == nil || f.Implementation != cudaapi.PerThread || f.Target != "cuEventRecord" || len(f.Params) != len(base.Params) {
		t.Errorf("row of cuEventRecord_ptsz = %+v, want per-thread cuEventRecord with the same parameters", f)
	}
	if got, want := base.Prototype(), "CUresult cuEventRecord(CUevent hEvent, CUstream hStream)"; got != want {
		t.Errorf("prototype = %q, want %q", got, want)
	}
}

// Every type in the table is C's own or declared by the table.
func TestTypesAreKnown(t *testing.T) {
	table := read(t)
	known := map[string]bool{"void": true, "int": true, "unsigned int": true, "size_t": true, "char": true, "float": true,
		"unsigned char": true, "unsigned short": true, "unsigned long long": true,
		"CUuuid": true, "CUhostFn": true, "CUstreamCallback": true, "CUoccupancyB2DSize": true, "CUasyncCallback": true, "CUlogsCallback": true}
	for _, ty := range table.Types {
		known[ty.Name] = true
	}
	for _, f := range table.Functions {
		for _, p := range f.Params {
			plain := strings.TrimSpace(strings.NewReplacer("const ", "", "*", "").Replace(p.Type))
			if !known[plain] {
				t.Errorf("%s: parameter %s has the undeclared type %q", f.Symbol, p.Name, p.Type)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"cuA", `functions.txt:1: "cuA" is not a type`},
		{"cuA 2000=cuA\n\tcuA(int) own", `functions.txt:2: cuA: parameter "int" has no name`},
		{"cuA 2000=cuA", "cuA has no row"},
		{"\tcuA(void) own\n\tcuA(void) own", "functions.txt:2: cuA is declared twice"},
		{"\tcuA(void) as cuB", "does not exist or has another number of parameters"},
		{"\tcuA(void) refuse", "must be followed by one word"},
		{"\tcuA(void) call", "must be followed by a command number"},
		{"\tcuA(void) call 9 slowly", `"slowly" is neither`},
		{"\tcuA(void) call 9\n\tcuB(void) call 9", "cuA and cuB have the same command number 9"},
		{"layout A 4", "A, which is neither a struct nor a union"},
		{"struct A\nlayout A 4\nlayout A 4", "A has two layouts"},
		{"struct A\nlayout A 6", "want a multiple of 4"},
		{"\t0 int x", "member without a layout"},
		{"struct A\nlayout A 4\n\t1: 0 int x", "begin with a case"},
		{"union A = A_\nlayout A 4\n\t0 int x", "begin with a case"},
		{"struct A\nlayout A 4\n\t0 CUstream x", "neither a number nor a struct"},
		{"struct A\nlayout A 8\n\t0 void *x", "x is an address: touch=MEMBER is missing"},
		{"struct A\nlayout A 16\n\t0 void *x touch=y\n\t8 size_t z", "touch=y: member does not exist"},
		{"struct A\nlayout A 8\n\t2 int x", "offset 2 is not a multiple of 4"},
		{"struct A\nlayout A 8\n\t0 int x[2]\n\t4 int y", "which ends at 8"},
		{"struct A\nlayout A 8\n\t4 int x\n\t8 int y", "members end at byte 12, want at most 8"},
		{"\tcuA(void) call 9 count=x:y", "want count="},
		{"cuA 2000=cuA | 7000=cuA_ptds\n\tcuA(int a) own", "cuA_ptds needs a row of its own"},
	} {
		if _, err := cudaapi.Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%q) = %v, want %q", c.text, err, c.want)
		}
	}
}

// A parameter that commands do not support is refused with its name.
func TestCommandErrors(t *testing.T) {
	const types = "enum E\nstruct S\nlayout S 4\n\t0 int x\nunion U = U_\nlayout U 4\n\t1: 0 int x\n"
	for _, c := range []struct{ row, want string }{
		{"cuA(void *p) call 9", "p is an address"},
		{"cuA(const int *p) call 9", "p is an array"},
		{"cuA(const int *p, size_t n) call 9 count=p:n:5", "n is not a 32-bit number"},
		{"cuA(S *s) call 9", "returns a struct must have soft=ERROR"},
		{"cuA(U *u, E e) call 9 soft=NOT_SUPPORTED by=u:e", "is not an enum before it"},
		{"cuA(CUstream s, S *x) call 9 stream soft=NOT_SUPPORTED", "no result"},
		{"cuA(unsigned char x) call 9", "commands do not support"},
		{"cuA(const S *s, E e, const U *u, const int *a, int n) call 9 by=u:e count=a:n-1:5", ""},
	} {
		table, err := cudaapi.Parse(types + "handle CUstream = s\n\t" + c.row)
		if err != nil {
			t.Fatalf("Parse(%s) = %v, want no error", c.row, err)
		}
		if _, err := table.Commands(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("Commands of %s = %v, want %q", c.row, err, c.want)
		}
	}
}

// A struct within a struct is resolved, and members that are not sent are left
// out.
func TestLayouts(t *testing.T) {
	l := read(t).Layout("CUmemAllocationProp")
	if l == nil || l.Name() != "MemAllocationProp" || l.Wire() != 32 || len(l.Members) != 9 {
		t.Fatalf("layout of CUmemAllocationProp = %+v, want 9 members and 32 bytes on the wire", l)
	}
	id := l.Members[3]
	if id.Path != "location.id" || id.Offset != 12 || id.Field() != "LocationId" || !id.Device {
		t.Errorf("fourth member of CUmemAllocationProp = %+v, want the device number location.id at offset 12", id)
	}
	if got := len(l.Passed(0)); got != 7 {
		t.Errorf("%d members are sent, want 7", got)
	}
}
