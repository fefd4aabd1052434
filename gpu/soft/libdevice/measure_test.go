package libdevice

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// With -update, TestAccuracy measures again with more arguments, and writes the table
// of the documentation: go test ./gpu/soft/libdevice -run TestAccuracy -update
var update = flag.Bool("update", false, "write the table of docs/soft-math.md")

const (
	document    = "../../../docs/soft-math.md"
	tableBegins = "<!-- table: go test ./gpu/soft/libdevice -run TestAccuracy -update -->\n"
	tableEnds   = "<!-- end of table -->\n"
	fewSamples  = 40   // of each function, in every test
	allSamples  = 1000 // for the documentation; the first are the same
)

// largest has the largest errors found, in ulp and absolute.
type largest struct{ ulp, absolute float64 }

// TestAccuracy checks that every function has at most the error in the documentation,
// and that of a GPU in the CUDA C++ Programming Guide.
func TestAccuracy(t *testing.T) {
	samples := fewSamples
	if *update {
		samples = allSamples
	}
	rows := make([]string, len(functionsMeasured))
	t.Run("functions", func(t *testing.T) {
		for i, m := range functionsMeasured {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				double, single := measure(t, m, false, samples), measure(t, m, true, samples)
				rows[i] = m.row(double, single)
				if !*update {
					m.compare(t, double, single)
				}
			})
		}
	})
	if *update && !t.Failed() {
		writeTable(t, rows)
	}
}

func readDocument(t *testing.T) (before, table, after string) {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), tableBegins)
	table, after, end := strings.Cut(rest, tableEnds)
	if !ok || !end {
		t.Fatalf("%s has no table between %q and %q, want one", document, tableBegins, tableEnds)
	}
	return before, table, after
}

const heading = "| function | double: error | allowed | float: error | allowed |\n|---|---|---|---|---|\n"

func writeTable(t *testing.T, rows []string) {
	before, _, after := readDocument(t)
	text := before + tableBegins + heading + strings.Join(rows, "") + tableEnds + after
	if err := os.WriteFile(document, []byte(text), 0o644); err != nil { //nolint:gosec // a document
		t.Fatal(err)
	}
}

// row returns the function's line of the table.
func (m measured) row(double, single largest) string {
	cells := func(e largest, bound, absolute float64) string {
		var found, allowed []string
		if bound > 0 {
			found, allowed = append(found, fmt.Sprintf("%.2f", math.Ceil(e.ulp*100)/100)), append(allowed, fmt.Sprint(bound))
		}
		if m.from > 0 {
			found, allowed = append(found, fmt.Sprintf("%.1e abs", e.absolute*1.05)), append(allowed, fmt.Sprintf("%.1e abs", absolute))
		}
		return strings.Join(found, ", ") + " | " + strings.Join(allowed, ", ")
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", m.name, cells(double, m.bound, m.absolute), cells(single, m.boundf, m.absolutef))
}

// compare compares measured errors with the documentation.
func (m measured) compare(t *testing.T, double, single largest) {
	_, table, _ := readDocument(t)
	_, rest, ok := strings.Cut(table, "| `"+m.name+"` | ")
	line, _, _ := strings.Cut(rest, "\n")
	cells := strings.Split(line, " | ")
	if !ok || len(cells) != 4 {
		t.Fatalf("%s has no line for %s: run the test with -update", document, m.name)
	}
	for i, e := range []largest{double, single} {
		for found := range strings.SplitSeq(cells[2*i], ", ") {
			number, absolute := strings.CutSuffix(found, " abs")
			documented, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatalf("parse the table of %s: %v", document, err)
			}
			got := e.ulp
			if absolute {
				got = e.absolute
			}
			if got > documented {
				t.Errorf("%s: error = %g, want at most the %s of the documentation", [...]string{"double", "float"}[i], got, found)
			}
		}
	}
}

// measure returns the largest errors of a function, and reports those that are not
// allowed.
func measure(t *testing.T, m measured, float bool, samples int) (most largest) {
	r := rand.New(rand.NewPCG(18, 8)) //nolint:gosec // the same arguments each time
	exponent, fraction, least, bound, absolute := 1022.0, 52, -1074, m.bound, m.absolute
	if float {
		exponent, fraction, least, bound, absolute = 126, 23, -149, m.boundf, m.absolutef
	}
	for range samples {
		x := m.args(r, exponent)
		in := make([]real, len(x))
		for i := range x {
			if float {
				x[i] = float64(float32(x[i]))
			}
			in[i] = num(precision, x[i])
		}
		got, want := call(m.name, float, x), m.ref(in)
		if m.from > 0 && math.Abs(x[len(x)-1]) > m.from {
			e, _ := difference(num(precision, got), want).Float64()
			if most.absolute = max(most.absolute, math.Abs(e)); math.Abs(e) > absolute {
				t.Errorf("%s of %v = %v, want %.20g: absolute error %g, allowed %g", m.name, x, got, want, e, absolute)
			}
			continue
		}
		e := ulpError(got, want, fraction, least, map[bool]int{false: 1024, true: 128}[float])
		if most.ulp = max(most.ulp, e); !(e <= bound) {
			t.Errorf("%s of %v = %v, want %.20g: error %g ulp, allowed %g", m.name, x, got, want, e, bound)
		}
	}
	return most
}

// call calls a function by its loop.
func call(name string, float bool, x []float64) float64 {
	if float {
		name += "f"
	}
	f, ok := Find(Prefix + name)
	if !ok {
		panic("no function " + name)
	}
	var narrow [4][]uint32
	var wide [4][]uint64
	for i, a := range x {
		narrow[i], wide[i] = []uint32{math.Float32bits(float32(a))}, []uint64{math.Float64bits(a)}
	}
	if name == "jnf" || name == "ynf" || name == "jn" || name == "yn" {
		narrow[0][0] = uint32(x[0])
	}
	d, e := []uint32{0}, []uint64{0}
	switch l := f.Result.Loop.(type) {
	case func(d, a []uint32):
		l(d, narrow[0])
	case func(d, a, b []uint32):
		l(d, narrow[0], narrow[1])
	case func(d, a, b, c []uint32):
		l(d, narrow[0], narrow[1], narrow[2])
	case func(d, a, b, c, e []uint32):
		l(d, narrow[0], narrow[1], narrow[2], narrow[3])
	case func(d, a []uint64):
		l(e, wide[0])
	case func(d []uint64, a []uint32, b []uint64):
		l(e, narrow[0], wide[1])
	case func(d, a, b []uint64):
		l(e, wide[0], wide[1])
	case func(d, a, b, c []uint64):
		l(e, wide[0], wide[1], wide[2])
	case func(d, a, b, c, e []uint64):
		l(e, wide[0], wide[1], wide[2], wide[3])
	}
	if float {
		return float64(math.Float32frombits(d[0]))
	}
	return math.Float64frombits(e[0])
}
