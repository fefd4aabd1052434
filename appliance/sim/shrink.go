package sim

import "os"

// Shrink a failing run: it leaves out one fault or action after another as long
// as the run still fails, and returns what was left of them. Any failure
// counts, the first often turns into a plainer one.
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
	for more := worst.Err != nil; more; {
		more = false
		for i := range worst.Plan {
			if skip[i] {
				continue
			}
			skip[i] = true
			if r := run(); r.Err != nil {
				worst, more = r, true
			} else {
				delete(skip, i)
			}
		}
	}
	return worst, skip
}
