package ops

import (
	"fmt"
	"maps"
	"strings"
)

// Operation is the computation of an instruction in each lane.
type Operation struct {
	// Name is the key in ops.txt, or the name of an operation with constants.
	Name string
	// Constants are the constants of the instruction.
	Constants []uint64
	// Loop executes the operation: it is a function of slices of one register's lanes, the
	// result first.
	Loop any
}

// String returns the name with the constants.
func (o Operation) String() string {
	if len(o.Constants) == 0 {
		return o.Name
	}
	return fmt.Sprintf("%s%#x", o.Name, o.Constants)
}

// Find returns the operation of ops.txt for an opcode and modifiers.
func Find(op string, mods ...string) (o Operation, ok bool) {
	o.Name = key(op, mods)
	o.Loop, ok = vectorOps[o.Name]
	return o, ok
}

// Operations returns a copy of the table of all loops of ops.txt, by key.
func Operations() map[string]any { return maps.Clone(vectorOps) }

// key returns the name of an operation in ops.txt: .ftz of halves and singles, and
// .sat, become suffixes.
func key(op string, mods []string) string {
	var k strings.Builder
	k.WriteString(op)
	ftz, sat, last := "", "", ""
	if len(mods) > 0 {
		last = mods[len(mods)-1]
	}
	for _, m := range mods {
		switch {
		case m == "ftz" && last != "f64":
			ftz = "/ftz"
		case m == "sat":
			sat = "/sat"
		default:
			k.WriteString("." + m)
		}
	}
	return k.String() + ftz + sat
}
