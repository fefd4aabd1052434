// Package qemuimg runs qemu-img in a process that is killed when this one
// ends: on images received from users, confined (confined.go), and on Basalt's own disks.
package qemuimg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/sds/storagedaemon"
)

// maxOutput limits what is read of qemu-img's output, in bytes.
const maxOutput = 1 << 20

// Own runs qemu-img on Basalt's own disks, without a time limit, with secret
// objects by ID.
func Own(ctx context.Context, secrets map[string][]byte, args ...string) ([]byte, error) {
	files, objects, err := storagedaemon.Secrets(secrets)
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("pass secrets to qemu-img: %w", err)
	}
	words := append([]string{"--core=0", "qemu-img", args[0]}, objects...) // the verb comes first
	cmd := exec.CommandContext(ctx, "prlimit", append(words, args[1:]...)...)
	cmd.ExtraFiles = files
	return run(ctx, args[0], cmd)
}

// WrongKey reports whether qemu-img failed because a secret does not open a
// disk.
func WrongKey(err error) bool {
	var e *imgError
	return errors.As(err, &e) && strings.Contains(e.says, "Invalid password")
}

// run runs the command of a verb, and returns its output.
func run(ctx context.Context, verb string, cmd *exec.Cmd) ([]byte, error) {
	prepare(cmd)
	runtime.LockOSThread() // see prepare
	defer runtime.UnlockOSThread()
	out, errs := &limited{left: maxOutput}, &limited{left: maxOutput}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit):
		return out.Bytes(), &imgError{verb, strings.TrimSpace(errs.String()), exit}
	case err != nil:
		return nil, fmt.Errorf("qemu-img: %w", err)
	}
	return out.Bytes(), nil
}

// prepare has a command killed when this process ends, whose locks end too. The kernel
// treats the thread that starts it as its parent: the thread must not exit before it.
func prepare(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// imgError is an error that qemu-img reported.
type imgError struct {
	verb, says string
	exit       *exec.ExitError
}

func (e *imgError) Error() string {
	return "qemu-img " + e.verb + ": " + e.says + ": " + e.exit.String()
}

// Unwrap returns the exit status.
func (e *imgError) Unwrap() error { return e.exit }

// limited stores the first bytes and drops the rest.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), l.left)
	l.left -= keep
	l.Buffer.Write(p[:keep])
	return len(p), nil
}
