package backup

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	maxOutput = 16 << 20 // of restic's output that is stored
	maxLine   = 1 << 20
	interrupt = 10 * time.Second // for restic to remove its locks
)

// call is a call of restic.
type call struct {
	args   []string
	dir    string
	stdout io.Writer                     // nil: the output is stored and returned
	line   func(kind string, raw []byte) // called with each line of --json
}

// restic runs restic and returns its output. Locks of dead processes, of this
// node at once and of others after half an hour, are removed if they block the
// call.
func (t *Tool) restic(ctx context.Context, target Target, c call) ([]byte, error) {
	out, err := t.once(ctx, target, c)
	if errors.Is(err, errLocked) {
		if _, err := t.once(ctx, target, call{args: []string{"unlock"}}); err != nil {
			return nil, err
		}
		out, err = t.once(ctx, target, c)
	}
	return out, err
}

// once runs restic once. It is interrupted when this process ends, or when the
// target makes no progress for too long.
func (t *Tool) once(ctx context.Context, target Target, c call) ([]byte, error) {
	name, env, err := target.repository()
	if err != nil {
		return nil, err
	}
	ctx, stall := context.WithCancelCause(ctx)
	defer stall(nil)
	watch := time.AfterFunc(t.Stall, func() { stall(errStalled) })
	defer watch.Stop()

	cmd := exec.CommandContext(ctx, "restic", c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "LC_ALL=C", "RESTIC_REPOSITORY="+name, "RESTIC_PASSWORD="+target.Password,
		"RESTIC_CACHE_DIR="+t.Cache, "RESTIC_PROGRESS_FPS=2", "TMPDIR="+t.Cache)
	// It removes its lock when it is interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interrupt
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	out, errs := &limitedBuffer{left: maxOutput}, &limitedBuffer{left: maxOutput}
	alive := func() { watch.Reset(t.Stall) }
	out.each = lines(c.line, alive)
	cmd.Stdout, cmd.Stderr = out, errs
	if c.stdout != nil {
		cmd.Stdout = writer(func(p []byte) (int, error) { alive(); return c.stdout.Write(p) })
	}
	runtime.LockOSThread() // the kernel sends Pdeathsig when the thread ends
	err = cmd.Run()
	runtime.UnlockOSThread()
	switch {
	case errors.Is(context.Cause(ctx), errStalled):
		return nil, errors.Join(unreachable("no progress for "+t.Stall.String()), explain(errs.String(), err))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return nil, api.Errorf(api.CodeState, "restic is not installed on this node").WithHint("install the Debian package restic")
	case err != nil:
		return nil, fmt.Errorf("restic %s: %w", c.args[0], explain(errs.String(), err))
	}
	return out.Bytes(), nil
}

var errStalled = errors.New("no progress")

// lines returns a function that passes each line of JSON to line. It calls
// alive for progress: a status that equals the last one is not.
func lines(line func(kind string, raw []byte), alive func()) func(p []byte) {
	var last, rest []byte
	return func(p []byte) {
		if line == nil {
			alive()
			return
		}
		rest = append(rest, p...)
		for {
			n, raw, err := bufio.ScanLines(rest, false)
			if err != nil || n == 0 {
				break
			}
			var m struct {
				Kind string          `json:"message_type"`
				Done json.RawMessage `json:"bytes_done"`
			}
			if json.Unmarshal(raw, &m) == nil {
				if m.Kind != "status" || !bytes.Equal(m.Done, last) {
					last = bytes.Clone(m.Done)
					alive()
				}
				line(m.Kind, raw)
			}
			rest = rest[n:]
		}
		if len(rest) > maxLine {
			rest = nil
		}
	}
}

// limitedBuffer stores the first bytes that are written to it.
type limitedBuffer struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	left int
	each func(p []byte)
}

func (w *limitedBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keep := min(len(p), w.left)
	w.left -= keep
	w.buf.Write(p[:keep])
	if w.each != nil {
		w.each(p)
	}
	return len(p), nil
}

func (w *limitedBuffer) Bytes() []byte  { return w.buf.Bytes() }
func (w *limitedBuffer) String() string { return w.buf.String() }

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

var (
	errNoRepository = errors.New("no repository")
	errLocked       = errors.New("the repository is locked")
)

// explain converts restic's error output. It contains no secrets; it stays in
// the error chain, for the log.
func explain(says string, err error) error {
	if err == nil {
		return nil
	}
	says = strings.TrimSpace(says)
	cause := fmt.Errorf("%w: %s", err, tail(says))
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(says, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("wrong password", "no key found"):
		return errors.Join(api.Errorf(api.CodeForbidden, "the backup target rejected the password").Because(api.Cause{Code: api.CauseTargetPassword}, "").
			WithHint("set the password with which the repository was created"), cause)
	case has("already locked", "unable to create lock"):
		return errors.Join(api.Errorf(api.CodeInUse, "the backup target is locked by another backup or clean-up").Because(api.Cause{Code: api.CauseTargetBusy}, "").WithHint("it is tried again automatically"), errLocked, cause)
	case has("no space left", "disk quota exceeded"):
		return errors.Join(api.Errorf(api.CodeDiskFull, "the backup target is full").Because(api.Cause{Code: api.CauseTargetFull}, "").WithHint("delete backups, or increase its capacity"), cause)
	case has("ciphertext verification failed", "does not match id", "hash does not match", "invalid data returned", "Load(<data/", "repository contains errors", "unable to load index", "pack ", "load <index/"):
		return damaged(cause)
	case has("Access Denied", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "The Access Key Id", "permission denied"):
		return errors.Join(api.Errorf(api.CodeForbidden, "the backup target denied access").Because(api.Cause{Code: api.CauseTargetDenied}, "").WithHint("check its keys and permissions"), cause)
	case has("Is there a repository at", "unable to open config file", "repository does not exist"):
		if has("connection refused", "no such host", "i/o timeout", "no route to host", "connection reset") {
			return errors.Join(unreachable("connection failed"), cause)
		}
		return errors.Join(api.Errorf(api.CodeUnavailable, "the backup target contains no repository").Because(api.Cause{Code: api.CauseTargetEmpty}, "").
			WithHint("check that its directory is mounted, or that its bucket exists"), errNoRepository, cause)
	case has("at least one source file could not be read", "error reading", "read volume"):
		return errors.Join(api.Errorf(api.CodeUnavailable, "the volume could not be read completely").Because(api.Cause{Code: api.CauseVolumeUnreadable}, "").WithHint("it is tried again automatically"), cause)
	case has("connection refused", "no such host", "i/o timeout", "no route to host", "connection reset", "no such file or directory", "transport endpoint", "stale file handle", "input/output error"):
		return errors.Join(unreachable("input or output failed"), cause)
	}
	return cause
}

func tail(s string) string {
	const most = 2000
	if len(s) > most {
		s = "…" + s[len(s)-most:]
	}
	return s
}

func unreachable(why string) error {
	return api.Errorf(api.CodeUnavailable, "the backup target is not available: %s", why).Because(api.Cause{Code: api.CauseTargetUnavailable}, "").
		WithHint("check its server, its mount and the network to it")
}

func damaged(cause error) error {
	return errors.Join(api.Errorf(api.CodeState, "the backup or its repository is damaged").Because(api.Cause{Code: api.CauseBackupDamaged}, "").
		WithHint("other backups may be intact: check the target, and create new backups on another target"), cause)
}
