package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is one process for good: a pid is used again, a pid with the time of
// its start is not.
type process struct {
	boot  string // /proc/sys/kernel/random/boot_id
	pid   int
	start uint64 // clock ticks since boot: field 22 of /proc/PID/stat
}

const maxPidFile = 4 << 10

// readPid reads what the shim wrote: the boot's id, and a line of
// /proc/PID/stat.
func readPid(path string) (process, error) {
	f, err := os.Open(path)
	if err != nil {
		return process{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPidFile))
	if err != nil {
		return process{}, err
	}
	boot, stat, ok := strings.Cut(string(text), "\n")
	if !ok || boot == "" || !strings.HasSuffix(stat, "\n") {
		return process{}, fmt.Errorf("%s is not a valid PID file", path)
	}
	who, _, err := parseStat(stat)
	who.boot = boot
	return who, err
}

// parseStat reads proc(5)'s stat: "PID (NAME) STATE …", where NAME may have
// blanks and brackets.
func parseStat(text string) (who process, state byte, err error) {
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || shut < open {
		return process{}, 0, errors.New("not a line of /proc/PID/stat")
	}
	rest := strings.Fields(text[shut+1:])
	if len(rest) < 20 || len(rest[0]) != 1 {
		return process{}, 0, errors.New("line of /proc/PID/stat is too short")
	}
	who.pid, err = strconv.Atoi(strings.TrimSpace(text[:open]))
	if err == nil && who.pid <= 0 {
		err = fmt.Errorf("invalid PID %d", who.pid)
	}
	if err == nil {
		who.start, err = strconv.ParseUint(rest[19], 10, 64)
	}
	if err != nil {
		return who, 0, fmt.Errorf("parse line of /proc/PID/stat: %w", err)
	}
	return who, rest[0][0], nil
}

// alive tells whether this very process runs; a zombie does not.
func (p process) alive() bool {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || strings.TrimSpace(string(boot)) != p.boot {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/stat")
	if err != nil {
		return false
	}
	now, state, err := parseStat(string(text))
	return err == nil && now.pid == p.pid && now.start == p.start && state != 'Z' && state != 'X'
}

// end asks a process to end, and kills it after the grace. It signals through a
// pidfd that was checked: never another process that got the pid.
func end(ctx context.Context, p process, grace time.Duration) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	} else if err != nil {
		return fmt.Errorf("open process %d: %w", p.pid, err)
	}
	defer unix.Close(fd)
	if !p.alive() {
		return nil
	}
	for _, step := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, grace}, {unix.SIGKILL, 10 * time.Second}} {
		// A stopped one (SIGSTOP) hears nothing but SIGKILL: wake it.
		for _, s := range []unix.Signal{step.signal, unix.SIGCONT} {
			if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("signal process %d: %w", p.pid, err)
			}
		}
		if gone, err := waitEnd(ctx, fd, p, step.wait); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d does not exit after SIGKILL: it is blocked in the kernel", p.pid)
}

// waitEnd waits for the pidfd to become readable, which it does at the end.
func waitEnd(ctx context.Context, fd int, p process, patience time.Duration) (bool, error) {
	for deadline := time.Now().Add(patience); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return !p.alive(), nil
		}
		// In slices, to hear the context.
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(min(left, 100*time.Millisecond)/time.Millisecond)+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, err
		}
		if !p.alive() {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
}

// maxLog is when a log is cut, in bytes: what is older than that lies in one
// file beside it.
const maxLog = 8 << 20

// trim keeps a log within its limit. The program writes on with O_APPEND, so
// its file is copied and emptied, not renamed; lines written just between the
// two are lost.
func trim(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= maxLog {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	old := tail(path, maxLog)
	if err := os.WriteFile(path+".1", []byte(old), 0o600); err != nil {
		// A full disk: the log is the first to go.
		return errors.Join(os.Remove(path+".1"), os.Truncate(path, 0))
	}
	return os.Truncate(path, 0)
}

// tail is the last whole lines of a file, at most so many bytes.
func tail(path string, limit int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(info.Size()-limit, 0)
	text, err := io.ReadAll(io.LimitReader(io.NewSectionReader(f, from, limit), limit))
	if err != nil {
		return ""
	}
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return strings.ToValidUTF8(string(text), "?")
}
