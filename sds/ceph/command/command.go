// Package command runs Ceph's programs: with a time-out, a limited output,
// keys only in files, and in a process that is killed when this one ends. An
// error is an *Error with the errno that the program ended with, or a *Killed
// if a signal ended it. A read-only program is then run again.
package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// standardLimit is how long a program may run if nothing else is given.
const standardLimit = 30 * time.Second

const (
	maxOut  = 64 << 20 // `rbd du` of a pool with 100,000 images: 20 MiB
	maxSays = 64 << 10
)

// Runner runs programs as a user of a cluster.
type Runner struct {
	Conf string // ceph.conf, which names the keyring
	User string // without "client."; empty: admin
	// Timeout is the limit of one program; 0: 30 s. Without a limit Ceph's
	// programs wait for an unreachable cluster for ever. After a time-out the
	// limit of the same program is up to eight times longer (stretches).
	Timeout time.Duration
}

// Error is the error of a program.
type Error struct {
	Program, Verb string
	Errno         syscall.Errno // the exit status: 2 is ENOENT
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

// Killed is the error of a program that was ended by a signal that this
// package did not send: Ceph's programs are known to abort at their exit,
// after their work is done. The change may have been made, in part or
// completely.
type Killed struct {
	Program, Verb string
	Signal        syscall.Signal
}

func (e *Killed) Error() string {
	return fmt.Sprintf("%s %s was killed by signal %d", e.Program, e.Verb, int(e.Signal))
}

// ErrTimeout is in the error chain if the cluster did not answer in time.
var ErrTimeout = errors.New("the Ceph cluster did not respond in time")

// Run runs ceph, rbd or rados and returns its output. stdin may be nil. ceph may
// take a third of the limit to connect.
func (r Runner) Run(ctx context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
	user := r.User
	if user == "" {
		user = "admin"
	}
	// Read settings from the file instead of querying the mons first.
	all := []string{"--conf", r.Conf, "--id", user, "--no-mon-config"}
	base := cmp.Or(r.Timeout, standardLimit)
	limit := stretched.limit(program, base)
	if program == "ceph" {
		all = append(all, "--connect-timeout", strconv.Itoa(int(connectTime(limit).Seconds())))
	}
	start := time.Now()
	out, err := Exec(ctx, Exe{Program: program, Args: append(all, args...), Stdin: stdin, Timeout: limit})
	stretched.ended(program, base, limit, time.Since(start), err)
	return out, err
}

// Exe is a program to run.
type Exe struct {
	Program string
	Args    []string
	Verb    string    // for errors; empty: the first words of Args, or of Stdin
	Stdin   io.Reader // short: it is read into memory first
	Files   []*os.File
	Timeout time.Duration // 0: 30 s
	// Stays lets the program continue when this process dies, for a step whose
	// interruption would leave damage.
	Stays bool
}

// niceness is that of the programs (setpriority(2)).
const niceness = 5

// maxRuns is how often a read-only program is run if it is killed.
const maxRuns = 3

// Exec runs the program; a read-only one is run again if it was killed.
func Exec(ctx context.Context, x Exe) ([]byte, error) {
	x.Timeout = cmp.Or(x.Timeout, standardLimit)
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
		if !errors.As(err, &killed) || try == maxRuns || !ReadOnly(x.Program, x.Args, string(said)) {
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
		// The kernel treats the thread that started the program as its parent, so
		// the thread must not exit.
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	out, says := &limited{left: maxOut}, &limited{left: maxSays}
	cmd.Stdout, cmd.Stderr = out, says
	err := cmd.Start()
	if err == nil {
		// The cluster depends on the responses of the process that runs the programs, which
		// need seconds of a slow processor. An error means that the program has ended.
		_ = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, niceness)
		err = cmd.Wait()
	}
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

// errno returns the errno of a program's failure: rbd and ceph exit with it,
// rados exits with 1 and prints it in parentheses.
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
	return syscall.EPERM // which is 1
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// lastLines returns the last lines of a program's output, which contain the
// error.
func lastLines(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// limited stores the first bytes and drops the rest.
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
