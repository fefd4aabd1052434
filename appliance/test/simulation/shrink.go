package simulation

import (
	"os"
	"regexp"
)

// Shrink a failing run: it leaves out one fault or action after another as long
// as the run still fails in the same way, and returns what was left of them.
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
	worst := run()
	first := sort(worst.Err)
	for more := worst.Err != nil; more; {
		more = false
		for i := range worst.Plan {
			if skip[i] {
				continue
			}
			skip[i] = true
			if r := run(); r.Err != nil && sort(r.Err) == first {
				worst, more = r, true
			} else {
				delete(skip, i)
			}
		}
	}
	return worst, skip
}

// particulars of a failure: of whom, where, and how much; a run that is not
// settled in the end says all that is not, and the first is what counts.
var particulars = regexp.MustCompile(`/[^ ]*|"[^"]*"|[a-z]+-[a-z]*-?[0-9]+|[0-9.]+[a-z]*|;.*`)

// sort of a failure: what it says, without its particulars.
func sort(err error) string {
	if err == nil {
		return ""
	}
	return particulars.ReplaceAllString(err.Error(), "")
}
