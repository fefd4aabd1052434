// Package command runs Ceph's programs: with a time-out, an output that has a
// limit, keys only in files, and in a process that dies with this one. What
// went wrong is an *Error with the errno that the program ended with, or a
// *Killed when it did not come to that. One that only asks is then run again.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	maxOut  = 64 << 20 // `rbd du` of a pool with 100,000 images: 20 MiB
	maxSays = 64 << 10
)

// Runner runs programs as one user of one cluster.
type Runner struct {
	Conf string // ceph.conf, which names the keyring
	User string // without "client."; empty: admin
	// Timeout of one program; 0: 30 s. Ceph's programs wait for a cluster that
	// is away for ever.
	Timeout time.Duration
}

// Error of a program.
type Error struct {
	Program, Verb string
	Errno         syscall.Errno // that it ended with: 2 is ENOENT
	Says          string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %s (%d)", e.Program, e.Verb, e.Says, int(e.Errno))
}

// Is reports whether a program ended with the errno.
func Is(err error, errno syscall.Errno) bool {
	var e *Error
	return errors.As(err, &e) && e.Errno == errno
}

// Killed is the error of a program that a signal ended, and not this package:
// Ceph's own are known to abort when they have done all and only had to exit.
// What it was to change may be done, in part or not.
type Killed struct {
	Program, Verb string
	Signal        syscall.Signal
}

func (e *Killed) Error() string {
	return fmt.Sprintf("%s %s was killed by signal %d", e.Program, e.Verb, int(e.Signal))
}

// ErrTimeout is in the chain when the cluster did not answer in time.
var ErrTimeout = errors.New("the Ceph cluster did not respond in time")

// Run runs one of ceph, rbd and rados and returns what it printed. stdin may
// be nil.
func (r Runner) Run(ctx context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
	user := r.User
	if user == "" {
		user = "admin"
	}
	// Settings come from the file, not from a question to the mons first.
	all := append([]string{"--conf", r.Conf, "--id", user, "--no-mon-config"}, args...)
	return Exec(ctx, Exe{Program: program, Args: all, Stdin: stdin, Timeout: r.Timeout})
}

// Exe is a program to run.
type Exe struct {
	Program string
	Args    []string
	Verb    string    // for errors; empty: the first words of Args, or of Stdin
	Stdin   io.Reader // short: all of it is read first
	Files   []*os.File
	Timeout time.Duration // 0: 30 s
	// Stays: it goes on when this process dies, as a step must that would
	// leave something broken in its middle.
	Stays bool
}

// times that a question is asked whose program dies of it.
const times = 3

// Exec runs it, and what only asks once more when it was killed.
func Exec(ctx context.Context, x Exe) ([]byte, error) {
	if x.Timeout == 0 {
		x.Timeout = 30 * time.Second
	}
	var said []byte
	if x.Stdin != nil {
		var err error
		if said, err = io.ReadAll(x.Stdin); err != nil {
			return nil, err
		}
	}
	if x.Verb == "" {
		w := words(x.Args)
		if len(w) == 0 {
			w = strings.Fields(firstLine(string(said)))
		}
		x.Verb = strings.Join(w[:min(len(w), 3)], " ")
	}
	for try := 1; ; try++ {
		if x.Stdin != nil {
			x.Stdin = bytes.NewReader(said)
		}
		out, err := once(ctx, x)
		var killed *Killed
		if !errors.As(err, &killed) || try == times || !Asks(x.Program, x.Args, string(said)) {
			return out, err
		}
	}
}

func once(ctx context.Context, x Exe) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeout(ctx, x.Timeout)
	defer cancel()
	cmd := exec.CommandContext(timed, x.Program, x.Args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.Stdin, cmd.ExtraFiles, cmd.WaitDelay = x.Stdin, x.Files, time.Second
	if !x.Stays {
		// The kernel counts the thread that started it as its parent: the
		// thread must stay.
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	out, says := &limited{left: maxOut}, &limited{left: maxSays}
	cmd.Stdout, cmd.Stderr = out, says
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case timed.Err() != nil:
		return nil, fmt.Errorf("%s %s: %w", x.Program, x.Verb, ErrTimeout)
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		status, _ := exit.Sys().(syscall.WaitStatus)
		return nil, &Killed{Program: x.Program, Verb: x.Verb, Signal: status.Signal()}
	case errors.As(err, &exit):
		return out.Bytes(), &Error{Program: x.Program, Verb: x.Verb, Errno: errno(exit.ExitCode(), says.String()), Says: lastLines(says.String())}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", x.Program, err)
	case out.cut:
		return nil, fmt.Errorf("%s %s: output is larger than %d bytes", x.Program, x.Verb, maxOut)
	}
	return out.Bytes(), nil
}

// errno that a program means: rbd and ceph end with it, rados ends with 1 and
// prints it in brackets.
func errno(code int, says string) syscall.Errno {
	if code != 1 {
		return syscall.Errno(code)
	}
	at := strings.LastIndex(says, ": (")
	var n int
	if at >= 0 {
		if _, err := fmt.Sscanf(says[at:], ": (%d)", &n); err == nil && n > 0 && n < 4096 {
			return syscall.Errno(n)
		}
	}
	return syscall.EPERM // which 1 is
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// lastLines of what a program said: the rest is its way there.
func lastLines(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// limited keeps the first bytes and forgets the rest.
type limited struct {
	bytes.Buffer
	left int
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), l.left)
	l.cut = l.cut || keep < len(p)
	l.left -= keep
	l.Buffer.Write(p[:keep])
	return len(p), nil
}
