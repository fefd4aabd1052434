// Package supervisor runs the long-lived programs of others that a node needs
// (ovsdb-server, ovn-controller, ceph-osd, …). They outlive basaltd, which finds
// them again and leaves them alone.
//
//	          Run                    dies
//	absent ─────────► running ─────────────► dead
//	   ▲    Stop        │  ▲        Run       │
//	   └────────────────┘  └──────────────────┘
//	                 Run with different arguments: stopped, then started
//
// There are two implementations: Processes, which has no requirements, and Systemd,
// whose transient units systemd restarts by itself. New chooses.
//
// A name never has more than one program: Processes takes a lock per name, and
// whatever is killed between any two steps leaves a state that the next Run
// handles. Callers call Run again and again.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// Limits of a program's arguments and resources.
const (
	maxArgs     = 1024
	maxArgBytes = 128 << 10

	// grace is how long a program may take to end before it is killed. Ceph's OSDs
	// need the longest.
	grace = 20 * time.Second

	// maxOutput is the maximum size of a program's last output, in bytes.
	maxOutput = 2 << 10

	// maxFiles is the limit of open files of a program; ovs-vswitchd and ceph-osd
	// need many.
	maxFiles = 1 << 20
)

// Daemons runs programs by name. It is safe for concurrent use.
type Daemons interface {
	// Run makes sure that a program runs: it starts the program if it does not run,
	// and restarts it if its argv (the first element is an absolute path) has
	// changed. A started program may end at once: see Running and LastOutput.
	Run(ctx context.Context, name string, argv []string) error
	// Stop ends a program, and returns when it has ended. It returns nil if the
	// program does not run.
	Stop(ctx context.Context, name string) error
	// Running reports whether the program runs now.
	Running(ctx context.Context, name string) (bool, error)
	// LastOutput returns the last lines of the program's output, for error messages, or
	// "" if there are none.
	LastOutput(ctx context.Context, name string) string
}

// New returns Systemd if systemd is the first process, otherwise Processes with
// their state (PID files, locks) in state and their output in logs.
func New(state, logs string) (Daemons, error) {
	// This is what sd_booted(3) checks.
	if info, err := os.Stat("/run/systemd/system"); err == nil && info.IsDir() {
		return NewSystemd(), nil
	}
	return NewProcesses(state, logs)
}

var names = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)

func checkName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("daemon name %.80q: want up to 63 of a-z, 0-9, dot and dash", name)
	}
	return nil
}

func check(name string, argv []string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if len(argv) == 0 || len(argv[0]) == 0 || argv[0][0] != '/' {
		return fmt.Errorf("daemon %s: the program must be an absolute path", name)
	}
	size := 0
	for _, a := range argv {
		size += len(a)
		for i := range len(a) {
			if a[i] == 0 || a[i] == '\n' {
				return fmt.Errorf("daemon %s: an argument has a NUL or a line end", name)
			}
		}
	}
	if len(argv) > maxArgs || size > maxArgBytes {
		return fmt.Errorf("daemon %s: %d arguments of %d bytes, want at most %d of %d bytes", name, len(argv), size, maxArgs, maxArgBytes)
	}
	if _, err := os.Stat(argv[0]); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("daemon %s: %s is not installed", name, argv[0])
		}
		return fmt.Errorf("daemon %s: %w", name, err)
	}
	return nil
}
