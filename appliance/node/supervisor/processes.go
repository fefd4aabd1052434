package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// Processes runs each program as a process in a session of its own.
//
// Files in the state directory, by name: NAME.lock is locked while the program is
// being started or stopped; NAME.argv has the last arguments; NAME.pid is written
// by the program's own process before it executes the program, so that no program
// ever runs without a PID file.
type Processes struct {
	state, logs string
	grace       time.Duration
}

// NewProcesses returns Processes with PID files and locks in state and output in
// logs.
func NewProcesses(state, logs string) (*Processes, error) {
	for _, dir := range []string{state, logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return &Processes{state: state, logs: logs, grace: grace}, nil
}

func (p *Processes) file(name, what string) string { return filepath.Join(p.state, name+"."+what) }
func (p *Processes) log(name string) string        { return filepath.Join(p.logs, name+".log") }

// shim executes the program. It writes its identity (its line of /proc and the boot
// ID) first, and releases the lock (descriptor 3) with the exec: the lock is for
// starting, the PID file for running.
const shim = `read -r stat </proc/$$/stat && read -r boot </proc/sys/kernel/random/boot_id || exit 125
pid=$1; files=$2; shift 2
printf '%s\n%s\n' "$boot" "$stat" >"$pid.new" && mv "$pid.new" "$pid" || exit 125
ulimit -n "$files" 2>/dev/null
exec "$@" 3>&-`

// Run implements Daemons.
func (p *Processes) Run(ctx context.Context, name string, argv []string) error {
	if err := check(name, argv); err != nil {
		return err
	}
	lock, err := p.lock(ctx, name)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := trim(p.log(name)); err != nil {
		return fmt.Errorf("daemon %s: open log: %w", name, err)
	}
	if who, ok := p.find(name); ok {
		if slices.Equal(p.argv(name), argv) {
			return nil
		}
		// From here on the running program has no valid arguments, for every later
		// Run.
		if err := remove(p.file(name, "argv")); err != nil {
			return err
		}
		if err := end(ctx, who, p.grace); err != nil {
			return fmt.Errorf("daemon %s: stop it to restart it with other arguments: %w", name, err)
		}
	}
	text, err := json.Marshal(argv)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(p.file(name, "argv"), text, 0o600); err != nil {
		return err
	}
	if err := p.start(name, argv, lock); err != nil {
		return fmt.Errorf("daemon %s: %w", name, err)
	}
	return nil
}

func (p *Processes) start(name string, argv []string, lock *os.File) error {
	out, err := os.OpenFile(p.log(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	fmt.Fprintf(out, "%s basalt: starting %q\n", time.Now().UTC().Format(time.RFC3339), argv)
	pidFile := p.file(name, "pid")
	if err := remove(pidFile); err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", shim, "sh", pidFile, fmt.Sprint(maxFiles)}, argv...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/", "TZ=UTC"}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { // so that no zombie is left while basaltd runs
		err := cmd.Wait()
		p.crashed(name, cmd.ProcessState)
		ended <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, err := readPid(pidFile); err == nil {
			return nil
		}
		select {
		case err := <-ended:
			if _, perr := readPid(pidFile); perr == nil {
				return nil // it was started; its end is for the next Run
			}
			return fmt.Errorf("write PID file (is %s full?): %w", p.state, err)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.New("it did not start within 10 s")
		}
	}
}

// crashed writes to the log that the program was ended by a signal, which it cannot
// log itself. An abort is not logged, because the program's own message about it
// should be the last.
func (p *Processes) crashed(name string, state *os.ProcessState) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() == unix.SIGTERM || status.Signal() == unix.SIGABRT {
		return
	}
	out, err := os.OpenFile(p.log(name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return // its directory was removed
	}
	defer out.Close()
	fmt.Fprintf(out, "%s basalt: process %d was ended by a signal: %v\n", time.Now().UTC().Format(time.RFC3339), state.Pid(), status.Signal())
}

// Stop implements Daemons.
func (p *Processes) Stop(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	lock, err := p.lock(ctx, name)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := remove(p.file(name, "argv")); err != nil {
		return err
	}
	if who, ok := p.find(name); ok {
		if err := end(ctx, who, p.grace); err != nil {
			return fmt.Errorf("daemon %s: %w", name, err)
		}
	}
	return remove(p.file(name, "pid"))
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Running implements Daemons.
func (p *Processes) Running(_ context.Context, name string) (bool, error) {
	if err := checkName(name); err != nil {
		return false, err
	}
	_, ok := p.find(name)
	return ok, nil
}

// LastOutput implements Daemons.
func (p *Processes) LastOutput(_ context.Context, name string) string {
	if checkName(name) != nil {
		return ""
	}
	return tail(p.log(name), maxOutput)
}

// lock waits until nothing else starts or stops this program. A starting program
// holds the lock too (see shim), whatever process started it.
func (p *Processes) lock(ctx context.Context, name string) (*os.File, error) {
	f, err := os.OpenFile(p.file(name, "lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock of daemon %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("daemon %s is being started or stopped by another process: %w", name, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// find returns the program's process, if it is alive.
func (p *Processes) find(name string) (process, bool) {
	who, err := readPid(p.file(name, "pid"))
	return who, err == nil && who.alive()
}

// argv returns the last arguments, or nil if they are unknown.
func (p *Processes) argv(name string) (argv []string) {
	text, err := os.ReadFile(p.file(name, "argv"))
	if err != nil || json.Unmarshal(text, &argv) != nil {
		return nil
	}
	return argv
}
