package fence

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Harden protects this process against starvation: its memory is locked, the OOM
// killer spares it, and its threads are scheduled before ordinary ones. Each part
// that the system refuses is returned as an error; the others are in force.
func Harden() error {
	var errs []error
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0); err != nil {
		errs = append(errs, fmt.Errorf("oom_score_adj: %w", err))
	}
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); err != nil {
		errs = append(errs, fmt.Errorf("mlockall: %w", err))
	}
	// New threads inherit the policy from the existing ones.
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetAttr(tid, &attr, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("SCHED_RR: %w", err))
			break
		}
	}
	return errors.Join(errs...)
}
