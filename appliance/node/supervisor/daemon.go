// Package supervisor runs the long-lived programs of others that a node needs
// (ovsdb-server, ovn-controller, ceph-osd, …). They outlive basaltd: it finds
// them again and leaves them alone.
//
//	          Run                    dies
//	absent ─────────► running ─────────────► dead
//	   ▲    Stop        │  ▲        Run       │
//	   └────────────────┘  └──────────────────┘
//	                 Run with another argv: stopped, then started
//
// Two implementations: Processes, which needs nothing, and Systemd, whose
// transient units systemd restarts by itself. New chooses.
//
// One name is one program, whatever happens: Processes takes a lock per name,
// and whoever is killed between any two steps leaves what the next Run
// understands. Callers call Run again and again.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// Limits of what a caller may ask for.
const (
	maxArgs     = 1024
	maxArgBytes = 128 << 10

	// grace is what a program has to end by itself before it is killed. Ceph's
	// OSDs need the longest.
	grace = 20 * time.Second

	// maxWords is how much of a program's last output Words gives, in bytes.
	maxWords = 2 << 10

	// maxFiles is how many descriptors a program may have open; ovs-vswitchd and
	// ceph-osd need many.
	maxFiles = 1 << 20
)

// Daemons runs programs by name. Its methods may be called from any goroutine.
type Daemons interface {
	// Run makes a program run: starts it when it does not, starts it anew when
	// its argv (the first is an absolute path) has changed. That it has been
	// started does not mean that it stays up: see Running and Words.
	Run(ctx context.Context, name string, argv []string) error
	// Stop ends a program, and returns when it has ended. One that does not run
	// is no error.
	Stop(ctx context.Context, name string) error
	// Running tells whether it runs now.
	Running(ctx context.Context, name string) (bool, error)
	// Words are the last lines that it wrote, for error messages; empty when
	// there are none.
	Words(ctx context.Context, name string) string
}

// New is Systemd where systemd is the first process, else Processes with their
// state (pid files, locks) in state and their output in logs.
func New(state, logs string) (Daemons, error) {
	// What sd_booted(3) looks at.
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
