package ops

import (
	"fmt"
	"maps"
	"strings"
)

// Operation is what an instruction computes in each lane.
type Operation struct {
	// Name is its key in ops.txt, or that of one with constants, which follow it.
	Name string
	// Constants are those of the instruction.
	Constants []uint64
	// Loop computes it: a function of slices of one register's lanes, the result
	// first.
	Loop any
}

// String returns the name with the constants.
func (o Operation) String() string {
	if len(o.Constants) == 0 {
		return o.Name
	}
	return fmt.Sprintf("%s%#x", o.Name, o.Constants)
}

// Find returns the operation of an instruction whose opcode and modifiers ops.txt
// has.
func Find(op string, mods ...string) (o Operation, ok bool) {
	o.Name = key(op, mods)
	o.Loop, ok = vectorOps[o.Name]
	return o, ok
}

// Operations returns all loops of ops.txt by their keys.
func Operations() map[string]any { return maps.Clone(vectorOps) }

// key is the name of an operation in ops.txt: .ftz of halves and singles and
// .sat become suffixes.
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
