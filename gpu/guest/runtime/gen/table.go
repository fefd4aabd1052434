package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// function is a row of functions.txt.
type function struct {
	from, to  int    // the first and last major version that has it
	form      string // "-", "ptsz" or "ptds"
	kind      string // "call", "plain", "own", "own-early" or "refuse"
	ret, name string
	params    []param
	call      string // the driver call, for the kinds "call" and "plain"
}

// param is a parameter. value is its default value in C++, or "".
type param struct{ typ, name, value string }

// String returns the C declaration.
func (p param) String() string {
	if strings.HasSuffix(p.typ, "*") {
		return p.typ + p.name
	}
	return p.typ + " " + p.name
}

// join returns a parameter list in C.
func join(ps []param) string {
	if len(ps) == 0 {
		return "void"
	}
	var all []string
	for _, p := range ps {
		all = append(all, p.String())
	}
	return strings.Join(all, ", ")
}

// rows returns the lines of a table without comments and empty lines.
func rows(name string) ([]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all, nil
}

// splitName splits "const char *name=0" into type, name and default value.
func splitName(s string) param {
	s = strings.TrimSpace(s)
	s, value, _ := strings.Cut(s, "=")
	i := strings.LastIndexAny(s, " *") + 1
	return param{strings.TrimSpace(s[:i]), s[i:], value}
}

// parsePrototype parses a C declaration. head has the function's name and result type.
func parsePrototype(s string) (head param, params []param, err error) {
	before, rest, ok := strings.Cut(s, "(")
	inner, end, ok2 := strings.Cut(rest, ")")
	if !ok || !ok2 || end != "" {
		return head, nil, fmt.Errorf("%q is not a prototype", s)
	}
	if inner != "void" {
		for p := range strings.SplitSeq(inner, ",") {
			params = append(params, splitName(p))
		}
	}
	return splitName(before), params, nil
}

// parseFunction parses a row of functions.txt.
func parseFunction(line string) (f function, err error) {
	parts := strings.Split(line, " | ")
	head := strings.Fields(parts[0])
	if len(parts) < 2 || len(head) != 3 {
		return f, fmt.Errorf("%q: want VERSIONS FORM KIND | PROTOTYPE", line)
	}
	if _, err := fmt.Sscanf(head[0], "%d-%d", &f.from, &f.to); err != nil {
		return f, fmt.Errorf("%q: versions: %w", line, err)
	}
	f.form, f.kind = head[1], head[2]
	if !slices.Contains([]string{"-", "ptsz", "ptds"}, f.form) {
		return f, fmt.Errorf("%q: form %q is not known", line, f.form)
	}
	if !slices.Contains([]string{"call", "plain", "own", "own-early", "refuse"}, f.kind) {
		return f, fmt.Errorf("%q: kind %q is not known", line, f.kind)
	}
	proto, params, err := parsePrototype(parts[1])
	if err != nil {
		return f, err
	}
	f.ret, f.name, f.params = proto.typ, proto.name, params
	if calls := f.kind == "call" || f.kind == "plain"; calls != (len(parts) == 3) {
		return f, fmt.Errorf("%q: a driver call is for the kinds call and plain", line)
	} else if calls {
		f.call = parts[2]
	}
	return f, nil
}

// readFunctions reads functions.txt.
func readFunctions(name string) ([]function, error) {
	lines, err := rows(name)
	if err != nil {
		return nil, err
	}
	var all []function
	for _, l := range lines {
		f, err := parseFunction(l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, f)
	}
	return all, nil
}

// driverFunction is a row of driver.txt.
type driverFunction struct {
	name   string
	params []param
}

// readDriver reads driver.txt.
func readDriver(name string) ([]driverFunction, error) {
	lines, err := rows(name)
	if err != nil {
		return nil, err
	}
	var all []driverFunction
	for _, l := range lines {
		head, params, err := parsePrototype("int " + l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, driverFunction{head.name, params})
	}
	return all, nil
}

// checkCalls returns an error if a function calls one of the driver that driver.txt lacks.
func checkCalls(functions []function, driver []driverFunction) error {
	have := map[string]bool{}
	for _, d := range driver {
		have[d.name] = true
	}
	for _, f := range functions {
		if name, _, _ := strings.Cut(f.call, "("); name != "" && !have[name] {
			return fmt.Errorf("functions.txt: %s calls %s, which driver.txt lacks", f.name, name)
		}
	}
	return nil
}

// errorRow is a row of errors.txt.
type errorRow struct {
	code       int
	name, text string
}

// readErrors reads errors.txt.
func readErrors(name string) ([]errorRow, error) {
	lines, err := rows(name)
	if err != nil {
		return nil, err
	}
	var all []errorRow
	for _, l := range lines {
		f := strings.SplitN(l, " ", 3)
		code, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 3 {
			return nil, fmt.Errorf("%s: %q: want CODE NAME TEXT", name, l)
		}
		all = append(all, errorRow{code, f[1], f[2]})
	}
	return all, nil
}

// field is a row of properties.txt.
type field struct {
	majors     []int // the major versions that have it
	typ, name  string
	count      int      // number of array elements, or 1
	attributes []string // names of the device attributes that the elements are filled from
}

// in reports whether the structure of a major version has the field.
func (f field) in(major int) bool { return slices.Contains(f.majors, major) }

// readProperties reads properties.txt.
func readProperties(name string) ([]field, error) {
	lines, err := rows(name)
	if err != nil {
		return nil, err
	}
	var all []field
	for _, l := range lines {
		p := strings.Fields(l)
		if len(p) != 5 {
			return nil, fmt.Errorf("%s: %q: want MAJORS TYPE NAME COUNT ATTRIBUTES", name, l)
		}
		f := field{typ: strings.ReplaceAll(p[1], "-", " "), name: p[2]}
		for m := range strings.SplitSeq(p[0], ",") {
			n, err := strconv.Atoi(m)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", name, l, err)
			}
			f.majors = append(f.majors, n)
		}
		if f.count, err = strconv.Atoi(p[3]); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, l, err)
		}
		if p[4] != "-" {
			f.attributes = strings.Split(p[4], ",")
		}
		all = append(all, f)
	}
	return all, nil
}
