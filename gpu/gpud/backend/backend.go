// Package backend runs basalt-vgpu processes, one for each instance with a vGPU.
// A backend outlives the process that started it: the data needed to find it
// again is stored in a record beside its socket. A process is only considered a
// backend of this Runner when its PID and its start time are the recorded ones.
package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/apparmor"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu"
)

// Options configures a Runner.
type Options struct {
	Dir    string // folder of records, sockets and logs; a short path: a socket's path has at most 107 bytes
	Binary string // path of basalt-vgpu
	Worker string // path of basalt-worker
	GPUD   string // path of gpud's control socket
	// Groups limits the host resources that backends and their workers use; nil:
	// no limits.
	Groups *cgroup.Groups
	Debug  bool // backends serve their profiles on a unix socket, ID.debug in Dir
	Log    *slog.Logger
}

// Runner starts, finds and ends backends.
//
// Lock order: mu alone; it is never held while waiting for a process.
type Runner struct {
	o     Options
	exits chan string

	mu    sync.Mutex
	alive map[string]*process
}

type process struct {
	rec  record
	done chan struct{} // closed when it has ended
}

// record is what is stored on disk about a backend.
type record struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // field 22 of /proc/PID/stat: clock ticks after boot
	Boot    string `json:"boot"`
}

var validID = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// New returns a Runner for the folder o.Dir, with the backends that run already.
func New(o Options) (*Runner, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	// Only one Runner uses a folder at a time.
	if err := atomicfile.Sweep(time.Now(), o.Dir); err != nil {
		return nil, err
	}
	r := &Runner{o: o, exits: make(chan string, 1024), alive: map[string]*process{}}
	ids, err := r.List()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		raw, err := os.ReadFile(r.path(id, "json"))
		if err != nil {
			continue
		}
		var rec record
		if json.Unmarshal(raw, &rec) != nil || !rec.runs() {
			continue
		}
		if p, err := r.adopt(id, rec); err != nil {
			o.Log.Warn("watch vGPU backend failed", "id", id, "error", err)
		} else {
			r.alive[id] = p
			o.Log.Info("found vGPU backend", "id", id, "pid", rec.PID)
		}
	}
	return r, nil
}

// Exits returns the channel that receives the ID of each backend that has ended,
// whether or not it was asked to.
func (r *Runner) Exits() <-chan string { return r.exits }

// Socket returns the path of the socket on which the backend of id listens for
// QEMU.
func (r *Runner) Socket(id string) string { return r.path(id, "sock") }

func (r *Runner) path(id, ext string) string { return filepath.Join(r.o.Dir, id+"."+ext) }

// List returns the IDs that have a record, whether or not the process is alive.
func (r *Runner) List() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(r.o.Dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, f := range files {
		base := filepath.Base(f)
		ids = append(ids, base[:len(base)-len(".json")])
	}
	return ids, nil
}

// Alive reports whether the backend of id is running.
func (r *Runner) Alive(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive[id] != nil
}

// Observed returns what the backend of id has observed of its guest. known is false
// when the backend does not report it.
func (r *Runner) Observed(id string) (o vhostgpu.Observed, known bool, err error) {
	if o, known, err = vhostgpu.ReadObserved(r.Socket(id)); err != nil {
		return o, known, fmt.Errorf("read what the backend of vGPU %s has observed: %w", id, err)
	}
	return o, known, nil
}

// Ensure makes sure that the backend of id runs and listens, within the limits.
// token is the vGPU's secret; a backend that is already running has it. It
// returns the path of the backend's socket.
func (r *Runner) Ensure(ctx context.Context, id, token string, l cgroup.Limits) (socket string, err error) {
	if !validID.MatchString(id) {
		return "", fmt.Errorf("%q is not a valid vGPU ID", id)
	}
	if r.Alive(id) {
		return r.Socket(id), nil
	}
	p, err := r.start(id, token, l)
	if err != nil {
		return "", err
	}
	return r.Socket(id), r.listening(ctx, id, p)
}

func (r *Runner) start(id, token string, l cgroup.Limits) (*process, error) {
	args := []string{"--socket", r.Socket(id), "--gpud", r.o.GPUD, "--vgpu", id, "--worker", r.o.Worker, "--token-fd", "3"}
	if r.o.Debug {
		args = append(args, "--debug-listen", "unix:"+r.path(id, "debug"))
	}
	if r.o.Groups != nil {
		dirs, err := r.o.Groups.Ensure(id, l)
		if err != nil {
			return nil, fmt.Errorf("create the control group of vGPU %s: %w", id, err)
		}
		for _, dir := range dirs {
			args = append(args, "--cgroup", dir)
		}
	}
	if err := os.Remove(r.Socket(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	log, err := os.OpenFile(r.path(id, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// The backend waits for its token until its record is written: if this
	// process is killed in between, no process is left that could not be found
	// again.
	secret, give, err := wire.TokenPipe()
	if err != nil {
		return nil, fmt.Errorf("create the pipe for the token of vGPU %s: %w", id, err)
	}
	defer secret.Close()
	defer give.Close()
	argv := r.command(args)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{secret}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives us
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	rec, err := recordOf(cmd.Process.Pid)
	if err == nil {
		err = writeRecord(r.path(id, "json"), rec)
	}
	if err == nil {
		err = wire.GiveToken(give, token)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if errors.Is(err, os.ErrProcessDone) {
			err = r.endedAtStart(id)
		}
		return nil, err
	}
	p := &process{rec: rec, done: make(chan struct{})}
	r.mu.Lock()
	r.alive[id] = p
	r.mu.Unlock()
	go func() {
		_ = cmd.Wait() // its log has how it ended
		r.ended(id, p)
	}()
	return p, nil
}

// The paths that the AppArmor profile of backends has rules for.
const (
	installed = "/usr/bin/basalt-vgpu"
	usual     = "/run/basalt/vgpu"
)

// command returns the command line of a backend: under its AppArmor profile, unless its
// program or its folder is another one than on an installed node.
func (r *Runner) command(args []string) []string {
	argv := append([]string{r.o.Binary}, args...)
	if r.o.Binary != installed || filepath.Clean(r.o.Dir) != usual {
		return argv
	}
	return apparmor.VGPU.Command(argv...)
}

func (r *Runner) endedAtStart(id string) error {
	return fmt.Errorf("vGPU backend of %s exited during start, see its log %s", id, r.path(id, "log"))
}

// listening waits until the backend accepts connections: the socket appears when
// the backend listens.
func (r *Runner) listening(ctx context.Context, id string, p *process) error {
	for {
		if _, err := os.Stat(r.Socket(id)); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return r.endedAtStart(id)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// adopt watches a process that is not a child of this one.
func (r *Runner) adopt(id string, rec record) (*process, error) {
	fd, err := unix.PidfdOpen(rec.PID, 0)
	if err != nil {
		return nil, err
	}
	if !rec.runs() { // the PID may have been reused in the meantime
		_ = unix.Close(fd)
		return nil, os.ErrProcessDone
	}
	p := &process{rec: rec, done: make(chan struct{})}
	go func() {
		defer unix.Close(fd)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		r.ended(id, p)
	}()
	return p, nil
}

func (r *Runner) ended(id string, p *process) {
	close(p.done)
	r.mu.Lock()
	if r.alive[id] == p {
		delete(r.alive, id)
	}
	r.mu.Unlock()
	r.o.Log.Info("vGPU backend exited", "id", id, "pid", p.rec.PID)
	select {
	case r.exits <- id:
	default: // nobody receives; Alive reports the end
	}
}

// Remove ends the backend of id and deletes its files.
func (r *Runner) Remove(ctx context.Context, id string) error {
	r.mu.Lock()
	p := r.alive[id]
	r.mu.Unlock()
	if p != nil {
		if err := p.end(ctx); err != nil {
			return err
		}
	}
	if err := r.leave(ctx, id); err != nil {
		return err
	}
	files := []string{r.Socket(id), vhostgpu.ObservedFile(r.Socket(id)), r.path(id, "debug"), r.path(id, "log"), r.path(id, "json")}
	for _, file := range files { // the record last: until then the backend can be found again
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// leave removes id's control group. Workers end with their backend, but a moment
// later.
func (r *Runner) leave(ctx context.Context, id string) error {
	if r.o.Groups == nil {
		return nil
	}
	for {
		err := r.o.Groups.Remove(id)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("remove the control group of vGPU %s: %w", id, err)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *process) end(ctx context.Context) error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if p.rec.runs() {
			if err := syscall.Kill(p.rec.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		select {
		case <-p.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
	return fmt.Errorf("process %d did not exit", p.rec.PID)
}
