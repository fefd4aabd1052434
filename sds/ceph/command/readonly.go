package command

import (
	"path/filepath"
	"slices"
	"strings"
)

// readOnlyVerbs are the read-only verbs of each program.
var readOnlyVerbs = map[string][]string{
	"rbd":   {"children", "du", "info", "lock ls", "ls", "snap ls", "status", "trash ls"},
	"rados": {"get", "listomapkeys", "ls"}, // get to the standard output only
	"ceph": {
		"df", "health", "mon dump", "osd crush rule dump", "osd dump", "osd ls", "osd safe-to-destroy", "osd tree", "quorum_status", "status", "version", "versions",
	},
	"ceph-bluestore-tool": {"show-label"},
}

// ReadOnly reports whether a program is read-only, and may be run any number of
// times. It returns false for verbs that are not listed here. ceph without a
// verb runs each line of its standard input.
func ReadOnly(program string, args []string, stdin string) bool {
	program = filepath.Base(program)
	w := words(args)
	if program != "ceph" || len(w) > 0 {
		return among(readOnlyVerbs[program], w)
	}
	lines := strings.Split(strings.TrimSpace(stdin), "\n")
	return !slices.ContainsFunc(lines, func(l string) bool { return !among(readOnlyVerbs[program], strings.Fields(l)) })
}

func among(verbs, w []string) bool {
	return slices.ContainsFunc(verbs, func(v string) bool {
		want := strings.Fields(v)
		return len(w) >= len(want) && slices.Equal(w[:len(want)], want)
	})
}

// valued are the options that take the next word as their value.
var valued = []string{"--conf", "--connect-timeout", "--dev", "--format", "--id", "--pool"}

// words returns the words of a command line that are not options.
func words(args []string) []string {
	var all []string
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(valued, args[i]):
			i++
		case args[i] == "-" || !strings.HasPrefix(args[i], "-"):
			all = append(all, args[i])
		}
	}
	return all
}
