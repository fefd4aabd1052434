package cudaapi

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Layout is C's layout of a struct or a union on 64-bit Linux, as far as it is
// passed on. The members of a union have the value of the parameter that selects
// them.
type Layout struct {
	Type    string
	Size    int // bytes
	Union   bool
	Members []Member
}

// Member is a number in a struct, or an array of numbers.
type Member struct {
	Case   int // of a union: the value that selects the member
	Offset int // in bytes
	Type   string
	Path   string // its name in C, with the members that contain it: location.id
	Count  int    // elements of an array; 0: not an array
	// Zero means reserved: any other value is an error. Unused means that it is
	// never read. Neither is sent.
	Zero, Unused bool
	Device       bool   // a device number: the program's differ from the host's
	Only         string // the only value that a vGPU supports; empty: any
	Touch        string // of an address: the path of the member with the number of bytes
}

// Go returns the type of the number, and its size in bytes.
func (m Member) Go() (string, int) {
	n := numbers[m.Type]
	if n == "" {
		n = "int32" // an enum
	}
	return n, map[string]int{"uint8": 1, "uint16": 2, "int32": 4, "uint32": 4, "float32": 4, "uint64": 8}[n]
}

// Bytes returns the size of all its elements.
func (m Member) Bytes() int {
	_, n := m.Go()
	return n * max(1, m.Count)
}

// Field returns its name in Go.
func (m Member) Field() string {
	var b strings.Builder
	for part := range strings.SplitSeq(m.Path, ".") {
		b.WriteString(Arg{Param: Param{Name: strings.TrimSuffix(part, "_")}}.Field())
	}
	return b.String()
}

// Name returns the layout's name in Go: its type without CU or CUDA.
func (l *Layout) Name() string {
	name := strings.TrimPrefix(strings.TrimPrefix(l.Type, "CUDA_"), "CU")
	if !strings.Contains(name, "_") {
		return strings.ToUpper(name[:1]) + name[1:]
	}
	var b strings.Builder
	for part := range strings.SplitSeq(strings.ToLower(name), "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// Cases returns the values that select a union's members, lowest first; for a
// struct it returns 0 only.
func (l *Layout) Cases() (all []int) {
	for _, m := range l.Members {
		all = append(all, m.Case)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Passed returns the members of a case that are sent.
func (l *Layout) Passed(of int) (all []Member) {
	for _, m := range l.Members {
		if m.Case == of && !m.Zero && !m.Unused {
			all = append(all, m)
		}
	}
	return all
}

// Wire returns the size in a command: a multiple of 8 bytes.
func (l *Layout) Wire() int { return (l.Size + 7) &^ 7 }

// Layout returns the layout of a type, or nil. A struct inside another is
// resolved to its members.
func (t *Table) Layout(name string) *Layout { return t.layouts[name] }

// Layouts returns all layouts in the order of the file.
func (t *Table) Layouts() (all []*Layout) {
	for _, ty := range t.Types {
		if l := t.layouts[ty.Name]; l != nil {
			all = append(all, l)
		}
	}
	return all
}

var (
	layoutLine = regexp.MustCompile(`^layout (\w+) (\d+)$`)
	memberLine = regexp.MustCompile(`^\t(?:(\d+): )?(\d+) (.+?[ *])([\w.]+)(?:\[(\d+)\])?((?: (?:zero|unused|device|only=\d+|touch=\w+))*)$`)
)

// layoutOf parses a line that begins a layout; ok reports whether it is one.
func (t *Table) layoutOf(line string) (ok bool, err error) {
	m := layoutLine.FindStringSubmatch(line)
	if m == nil {
		return false, nil
	}
	kind := t.Kind(m[1])
	switch {
	case kind != Struct && kind != Union:
		return true, fmt.Errorf("layout of %s, which is neither a struct nor a union", m[1])
	case t.layouts[m[1]] != nil:
		return true, fmt.Errorf("%s has two layouts", m[1])
	}
	size, _ := strconv.Atoi(m[2]) // layoutLine only matches digits
	t.latest = &Layout{Type: m[1], Size: size, Union: kind == Union}
	t.layouts[m[1]] = t.latest
	return true, nil
}

// member parses a line of the latest layout; ok reports whether it is one.
func (t *Table) member(line string) (ok bool, err error) {
	m := memberLine.FindStringSubmatch(line)
	if m == nil {
		return false, nil
	}
	if t.latest == nil {
		return true, fmt.Errorf("%q: member without a layout", line)
	}
	if (m[1] != "") != t.latest.Union {
		return true, fmt.Errorf("%s: members must begin with a case and a colon if and only if the layout is a union", t.latest.Type)
	}
	x := Member{Type: strings.TrimSpace(m[3]), Path: m[4]}
	x.Case, _ = strconv.Atoi(m[1]) // digits or nothing, like the others
	x.Offset, _ = strconv.Atoi(m[2])
	x.Count, _ = strconv.Atoi(m[5])
	for _, w := range strings.Fields(m[6]) {
		option, value, _ := strings.Cut(w, "=")
		switch option {
		case "zero":
			x.Zero = true
		case "unused":
			x.Unused = true
		case "device":
			x.Device = true
		case "only":
			x.Only = value
		case "touch":
			x.Touch = value
		}
	}
	return true, t.latest.add(t, x)
}

// add adds a member to the layout, or the members of the struct that it is.
func (l *Layout) add(t *Table, x Member) error {
	inner := t.layouts[x.Type]
	switch {
	case inner != nil && inner != l && !inner.Union && x.Count == 0:
		for _, m := range inner.Members {
			m.Case, m.Offset, m.Path = x.Case, m.Offset+x.Offset, x.Path+"."+m.Path
			if m.Touch != "" {
				m.Touch = x.Path + "." + m.Touch
			}
			l.Members = append(l.Members, m)
		}
		return nil
	case numbers[x.Type] == "" && t.Kind(x.Type) != Enum:
		return fmt.Errorf("%s.%s has type %q, which is neither a number nor a struct with a layout before it", l.Type, x.Path, x.Type)
	case x.Type == "void *" && x.Touch == "" && !x.Zero && !x.Unused:
		return fmt.Errorf("%s.%s is an address: touch=MEMBER is missing, the member with the number of bytes", l.Type, x.Path)
	}
	l.Members = append(l.Members, x)
	return nil
}

// check checks that a layout is one that a C compiler could produce: aligned,
// within bounds and without overlaps.
func (l *Layout) check() error {
	if l.Size == 0 || l.Size%4 != 0 {
		return fmt.Errorf("%s: %d bytes, want a multiple of 4", l.Type, l.Size)
	}
	for _, of := range l.Cases() {
		members := slices.DeleteFunc(slices.Clone(l.Members), func(m Member) bool { return m.Case != of })
		slices.SortStableFunc(members, func(a, b Member) int { return cmp.Compare(a.Offset, b.Offset) })
		end := 0
		for _, m := range members {
			_, align := m.Go()
			switch {
			case m.Offset%align != 0:
				return fmt.Errorf("%s.%s: offset %d is not a multiple of %d", l.Type, m.Path, m.Offset, align)
			case m.Offset < end:
				return fmt.Errorf("%s.%s: offset %d is inside the previous member, which ends at %d", l.Type, m.Path, m.Offset, end)
			case m.Touch != "" && !slices.ContainsFunc(members, func(n Member) bool { return n.Path == m.Touch }):
				return fmt.Errorf("%s.%s: touch=%s: member does not exist", l.Type, m.Path, m.Touch)
			}
			end = m.Offset + m.Bytes()
		}
		if end > l.Size {
			return fmt.Errorf("%s: members end at byte %d, want at most %d", l.Type, end, l.Size)
		}
	}
	return nil
}
