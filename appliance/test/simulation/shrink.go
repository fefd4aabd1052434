package simulation

import (
	"os"
	"regexp"
)

// Shrink reduces a failing run: it leaves out one fault or action after another as long as the
// run still fails in the same way. It returns the last failing run and the numbers of what was
// left out.
func Shrink(o Options) (Result, map[int]bool) {
	skip := map[int]bool{}
	run := func() Result {
		o := o
		o.Skip = func(i int) bool { return skip[i] }
		dir, err := os.MkdirTemp(o.Dir, "shrink-")
		if err != nil {
			return Result{}
		}
		defer os.RemoveAll(dir)
		o.Dir = dir
		return Run(o)
	}
	failing := run()
	first := classOf(failing.Err)
	for more := failing.Err != nil; more; {
		more = false
		for i := range failing.Plan {
			if skip[i] {
				continue
			}
			skip[i] = true
			if r := run(); r.Err != nil && classOf(r.Err) == first {
				failing, more = r, true
			} else {
				delete(skip, i)
			}
		}
	}
	return failing, skip
}

// particulars matches the details of a failure: names, paths and numbers. Of a run that did not
// converge, only the first condition counts.
var particulars = regexp.MustCompile(`/[^ ]*|"[^"]*"|[a-z]+-[a-z]*-?[0-9]+|[0-9.]+[a-z]*|;.*`)

// classOf returns the class of a failure: its message without the particulars.
func classOf(err error) string {
	if err == nil {
		return ""
	}
	return particulars.ReplaceAllString(err.Error(), "")
}
