package ops

import (
	"maps"
	"strings"
)

// Find returns the loop of an instruction whose opcode and modifiers ops.txt
// has: a function of slices of one register's lanes, the result first.
func Find(op string, mods ...string) (loop any, ok bool) {
	loop, ok = vectorOps[key(op, mods)]
	return loop, ok
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
