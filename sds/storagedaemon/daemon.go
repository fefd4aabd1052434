// Package storagedaemon runs QEMU's storage daemon, which opens disks as QEMU
// does and exposes them to other programs, and controls it by QMP.
//
//	Start ─► running ─Close─► ended
//	            └─(it or this process dies)─► ended; what it had mounted is swept
//	                                          by the next Sweep of its directory
package storagedaemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxReply  = 1 << 20 // bytes of one line of QMP
	maxEvents = 64      // that are queued
	quitTime  = 10 * time.Second
)

// Daemon is a running storage daemon.
type Daemon struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	dir    string
	done   chan struct{} // closed when it has ended
	events chan event

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	mounts  []string
}

type reply struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
}

type event struct {
	Name string `json:"event"`
	Data struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"data"`
}

// Start starts a daemon. dir is an existing directory for its files, used by
// it alone; secrets do not appear in its arguments, files and environment.
func Start(ctx context.Context, dir string, secrets map[string][]byte) (*Daemon, error) {
	d := &Daemon{dir: dir, done: make(chan struct{}), events: make(chan event, maxEvents), waiting: map[int]chan reply{}}
	args := []string{"--chardev", "stdio,id=qmp", "--monitor", "chardev=qmp"}
	files, objects, err := Secrets(secrets)
	defer closeAll(files)
	if err != nil {
		return nil, err
	}
	d.cmd = exec.Command("qemu-storage-daemon", append(objects, args...)...)
	d.cmd.ExtraFiles = files
	d.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	d.cmd.Stderr = &d.stderr
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The kernel treats the thread that starts the daemon as its parent, and
		// kills the daemon when the thread ends: the thread must not exit.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := d.cmd.Start()
		started <- err
		if err == nil {
			d.read(stdout)
			_ = d.cmd.Wait()
			close(d.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("qemu-storage-daemon: %w", err)
	}
	if err := d.Do(ctx, "qmp_capabilities", nil, nil); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Signal sends a signal to the daemon's process.
func (d *Daemon) Signal(s os.Signal) error { return d.cmd.Process.Signal(s) }

// Secrets returns the files, from descriptor 3 on, and the arguments that
// define secret objects by ID for a program of QEMU. The caller closes the
// files once the program runs.
func Secrets(secrets map[string][]byte) (files []*os.File, args []string, err error) {
	for _, id := range slices.Sorted(maps.Keys(secrets)) {
		r, w, err := os.Pipe()
		if err != nil {
			return files, nil, err
		}
		// A pipe buffers at least 4 KiB.
		_, err = w.Write(secrets[id])
		if err = errors.Join(err, w.Close()); err != nil {
			return append(files, r), nil, err
		}
		args = append(args, "--object", fmt.Sprintf("secret,id=%s,file=/dev/fd/%d", id, 3+len(files)))
		files = append(files, r)
	}
	return files, args, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// read reads the daemon's output until it ends.
func (d *Daemon) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxReply)
	for lines.Scan() {
		var head struct {
			ID    *int   `json:"id"`
			Event string `json:"event"`
		}
		if json.Unmarshal(lines.Bytes(), &head) != nil {
			continue
		}
		switch {
		case head.ID != nil:
			var r reply
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				d.mu.Lock()
				if c := d.waiting[*head.ID]; c != nil {
					c <- r
				}
				delete(d.waiting, *head.ID)
				d.mu.Unlock()
			}
		case head.Event != "":
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				select {
				case d.events <- e:
				default: // a waiter polls as well
				}
			}
		}
	}
	if lines.Err() != nil {
		_ = d.cmd.Process.Kill() // its output cannot be decoded
	}
}

// Error is an error that the daemon returned.
type Error struct{ Command, Desc string }

// Error implements error.
func (e *Error) Error() string { return "qemu-storage-daemon: " + e.Command + ": " + e.Desc }

// Do runs a command; its result is decoded into out, unless that is nil.
func (d *Daemon) Do(ctx context.Context, command string, args, out any) error {
	c := make(chan reply, 1)
	d.mu.Lock()
	d.next++
	id := d.next
	d.waiting[id] = c
	d.mu.Unlock()
	ask := map[string]any{"execute": command, "id": id}
	if args != nil {
		ask["arguments"] = args
	}
	raw, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	if _, err := d.stdin.Write(append(raw, '\n')); err != nil {
		return d.ended(err)
	}
	select {
	case r := <-c:
		if r.Error != nil {
			return &Error{command, r.Error.Desc}
		}
		if out != nil {
			if err := json.Unmarshal(r.Return, out); err != nil {
				return fmt.Errorf("decode reply to %s: %w", command, err)
			}
		}
		return nil
	case <-d.done:
		return d.ended(io.ErrUnexpectedEOF)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Daemon) ended(err error) error {
	select {
	case <-d.done:
		return fmt.Errorf("qemu-storage-daemon ended (%v): %s: %w", d.cmd.ProcessState, bytes.TrimSpace(d.stderr.Bytes()), err)
	case <-time.After(quitTime):
		return err
	}
}

// Pid returns the process ID of the daemon.
func (d *Daemon) Pid() int { return d.cmd.Process.Pid }

// Done returns a channel that is closed when the daemon has ended.
func (d *Daemon) Done() <-chan struct{} { return d.done }

// Close ends the daemon, which first writes out all data.
func (d *Daemon) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), quitTime)
	defer cancel()
	err := d.Do(ctx, "quit", nil, nil)
	_ = d.stdin.Close()
	select {
	case <-d.done:
		err = nil // regardless of the answer
	case <-ctx.Done():
		_ = d.cmd.Process.Kill()
		<-d.done
	}
	if !d.cmd.ProcessState.Success() && err == nil {
		err = fmt.Errorf("qemu-storage-daemon: %v: %s", d.cmd.ProcessState, bytes.TrimSpace(d.stderr.Bytes()))
	}
	for _, m := range d.mounts {
		err = errors.Join(err, unmount(m))
	}
	return err
}

// Open opens a disk as the node name.
func (d *Daemon) Open(ctx context.Context, name string, blockDev map[string]any) error {
	blockDev["node-name"] = name
	return d.Do(ctx, "blockdev-add", blockDev, nil)
}

// Mount exposes the node as a regular file in the daemon's directory, only for
// this user, and returns its path.
func (d *Daemon) Mount(ctx context.Context, node string, writable bool) (string, error) {
	file := filepath.Join(d.dir, node)
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o600)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	d.mounts = append(d.mounts, file)
	err = d.Do(ctx, "block-export-add", map[string]any{
		"type": "fuse", "id": "fuse-" + node, "node-name": node, "mountpoint": file, "writable": writable, "growable": false, "allow-other": "off",
	}, nil)
	return file, err
}

// unmount unmounts what a killed daemon left, and removes the file below.
func unmount(file string) error {
	if err := unix.Unmount(file, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", file, err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep cleans up a directory of daemons: what they mounted and left is
// unmounted and removed.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, unmount(filepath.Join(dir, e.Name())))
	}
	return errors.Join(err, os.Remove(dir))
}
