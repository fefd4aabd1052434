package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// table is the content of functions.txt.
type table struct {
	types     []*typ
	functions []*function
	typeOf    map[string]*typ
	by        map[string]*function
}

// kind is the way in which C declares a type.
type kind string

const (
	handle kind = "handle"
	enum   kind = "enum"
	scalar kind = "scalar"
	record kind = "struct"
)

// typ is a C type that the API adds.
type typ struct {
	kind     kind
	name     string
	is       string // the struct's tag of a handle, the C type of a scalar
	bytes    int    // size of a struct
	versions []version
}

// version is one layout of a struct whose first word names the layout.
type version struct{ number, bytes int }

// word returns the first word of such a struct (NVML_STRUCT_VERSION).
func (v version) word() uint32 { return uint32(v.bytes) | uint32(v.number)<<24 }

// how is the way in which a function is defined; functions.txt explains the values.
type how string

const (
	own    how = "own"
	as     how = "as"
	refuse how = "refuse"
	deny   how = "deny"
)

// function is one symbol.
type function struct {
	name   string
	params []param
	how    how
	target string // the other function, if how is as
	later  bool   // newer than driver 550
}

// param is one parameter.
type param struct {
	typ, name string
	optional  bool // a pointer that may be NULL
}

func (p param) pointer() bool { return strings.HasSuffix(p.typ, "*") }

// String returns the C declaration.
func (p param) String() string {
	if p.pointer() {
		return p.typ + p.name
	}
	return p.typ + " " + p.name
}

// prototype returns the C declaration without attributes.
func (f *function) prototype() string {
	result := "nvmlReturn_t "
	if f.name == "nvmlErrorString" {
		result = "const char *"
	}
	if len(f.params) == 0 {
		return result + f.name + "(void)"
	}
	return result + f.name + "(" + f.list(param.String) + ")"
}

// list joins what each returns for the parameters.
func (f *function) list(each func(param) string) string {
	var all []string
	for _, p := range f.params {
		all = append(all, each(p))
	}
	return strings.Join(all, ", ")
}

// last returns the function that f finally calls.
func (t *table) last(f *function) *function {
	for f.how == as {
		f = t.by[f.target]
	}
	return f
}

// versioned returns the type of the struct with versions that p points to, or nil.
func (t *table) versioned(p param) *typ {
	if y := t.typeOf[strings.TrimSuffix(strings.TrimPrefix(p.typ, "const "), " *")]; y != nil && len(y.versions) > 0 {
		return y
	}
	return nil
}

var (
	typeLine     = regexp.MustCompile(`^(handle|enum|scalar|struct) (\w+)(?: = (.+)| (\d+)((?: v\d+:\d+)*))?$`)
	functionLine = regexp.MustCompile(`^(\w+)\((.*)\) (own|as|refuse|deny)(?: (nvml\w+))?( later)?$`)
	paramText    = regexp.MustCompile(`^(.*?[ *])(\w+)(\?)?$`)
)

// parse decodes functions.txt. Its errors name the line.
func parse(text string) (*table, error) {
	t := &table{typeOf: map[string]*typ{}, by: map[string]*function{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := t.line(line); err != nil {
			return nil, fmt.Errorf("functions.txt:%d: %w", n, err)
		}
	}
	for _, f := range t.functions {
		if f.how != as {
			continue
		}
		if to := t.by[f.target]; to == nil || len(to.params) != len(f.params) || to.how == as {
			return nil, fmt.Errorf("functions.txt: %s is as %s, which must have the same parameters and must not be as itself", f.name, f.target)
		}
	}
	return t, nil
}

// line adds the type or function of one line.
func (t *table) line(line string) error {
	if m := typeLine.FindStringSubmatch(line); m != nil {
		return t.addType(m)
	}
	m := functionLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("%q is neither a type nor a function", line)
	}
	f := &function{name: m[1], how: how(m[3]), target: m[4], later: m[5] != ""}
	switch {
	case t.by[f.name] != nil:
		return fmt.Errorf("%s is listed twice", f.name)
	case (f.how == as) != (f.target != ""):
		return fmt.Errorf("%s: a function name must follow as, and only as", f.name)
	}
	if m[2] != "void" {
		for p := range strings.SplitSeq(m[2], ",") {
			if err := t.addParam(f, strings.TrimSpace(p)); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	t.functions, t.by[f.name] = append(t.functions, f), f
	return nil
}

// addType adds the type of a match of typeLine.
func (t *table) addType(m []string) error {
	y := &typ{kind: kind(m[1]), name: m[2], is: m[3]}
	if y.kind == record {
		y.bytes, _ = strconv.Atoi(m[4]) // fails only if it is empty
		for v := range strings.FieldsSeq(m[5]) {
			number, bytes, _ := strings.Cut(v[1:], ":")
			a, err := strconv.Atoi(number)
			b, err2 := strconv.Atoi(bytes)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			y.versions = append(y.versions, version{a, b})
		}
	}
	if needs := y.kind == handle || y.kind == scalar; needs != (y.is != "") || y.kind == record && y.bytes == 0 {
		return fmt.Errorf("%s: a handle and a scalar want = and their tag or type, a struct its bytes, an enum nothing", y.name)
	}
	if t.typeOf[y.name] != nil {
		return fmt.Errorf("%s is listed twice", y.name)
	}
	t.types, t.typeOf[y.name] = append(t.types, y), y
	return nil
}

// plain lists the types of C, and the type of results.
var plain = map[string]bool{"int": true, "unsigned int": true, "unsigned long": true, "unsigned long long": true, "char": true, "void": true, "void *": true, "nvmlReturn_t": true}

// addParam adds a parameter to f.
func (t *table) addParam(f *function, text string) error {
	m := paramText.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("parameter %q has no name", text)
	}
	p := param{typ: strings.TrimSpace(m[1]), name: m[2], optional: m[3] != ""}
	base := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(p.typ, "const "), "*"))
	if !plain[base] && t.typeOf[base] == nil {
		return fmt.Errorf("parameter %q: there is no type %q", text, base)
	}
	if p.optional && !p.pointer() {
		return fmt.Errorf("parameter %q is not a pointer", text)
	}
	f.params = append(f.params, p)
	return nil
}
