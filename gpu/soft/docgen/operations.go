package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/native"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// operations returns the table of the operations of ops.txt, with a row for each
// opcode.
func operations() string {
	keys := map[string][]string{} // by opcode
	for key := range ops.Operations() {
		op, _, _ := strings.Cut(key, ".")
		keys[op] = append(keys[op], key)
	}
	var b strings.Builder
	b.WriteString("| instruction | forms | machine code |\n|---|---|---|\n")
	for _, op := range slices.Sorted(maps.Keys(keys)) {
		slices.Sort(keys[op])
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", op, forms(op, keys[op]), compiled(keys[op]))
	}
	return b.String()
}

// forms returns the modifiers of an opcode's keys. Those with the same types are
// combined.
func forms(op string, keys []string) string {
	types := map[string][]string{} // by the modifiers before the type
	for _, key := range keys {
		key = strings.TrimPrefix(key, op)
		key, suffix, _ := strings.Cut(key, "/")
		last := strings.LastIndexByte(key, '.')
		mods := key[:last]
		if suffix != "" {
			mods += "." + strings.ReplaceAll(suffix, "/", ".")
		}
		types[mods] = append(types[mods], key[last+1:])
	}
	mods := map[string][]string{} // by the types
	for m, t := range types {
		slices.Sort(t)
		all := strings.Join(t, " ")
		mods[all] = append(mods[all], m)
	}
	var list []string
	for t, m := range mods {
		slices.Sort(m)
		text := t
		if m = slices.DeleteFunc(m, func(s string) bool { return s == "" }); len(m) > 0 {
			text = "`" + strings.Join(m, "`, `") + "`: " + t
			if slices.Contains(mods[t], "") {
				text = "plain, " + text
			}
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// compiled returns for how many of the keys there is machine code.
func compiled(keys []string) string {
	n := 0
	for _, key := range keys {
		if native.Makes(ops.Operation{Name: key, Constants: []uint64{0}}) {
			n++
		}
	}
	switch n {
	case 0:
		return "no"
	case len(keys):
		return "all"
	}
	return fmt.Sprintf("%d of %d", n, len(keys))
}
