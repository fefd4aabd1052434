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

// process identifies one process for good: a PID can be reused, a PID with its
// start time cannot.
type process struct {
	boot  string // /proc/sys/kernel/random/boot_id
	pid   int
	start uint64 // clock ticks since boot: field 22 of /proc/PID/stat
}

const maxPidFile = 4 << 10

// readPid parses what the shim wrote: the boot ID, and a line of /proc/PID/stat.
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

// parseStat parses stat of proc(5): "PID (NAME) STATE …", where NAME may have
// blanks and brackets. runs reports whether any thread of the process does: it may be a
// zombie whose other threads are still ending, and have its files and sockets open.
func parseStat(text string) (who process, runs bool, err error) {
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || shut < open {
		return process{}, false, errors.New("not a line of /proc/PID/stat")
	}
	rest := strings.Fields(text[shut+1:])
	if len(rest) < 20 || len(rest[0]) != 1 {
		return process{}, false, errors.New("line of /proc/PID/stat is too short")
	}
	who.pid, err = strconv.Atoi(strings.TrimSpace(text[:open]))
	if err == nil && who.pid <= 0 {
		err = fmt.Errorf("invalid PID %d", who.pid)
	}
	if err == nil {
		who.start, err = strconv.ParseUint(rest[19], 10, 64)
	}
	if err != nil {
		return who, false, fmt.Errorf("parse line of /proc/PID/stat: %w", err)
	}
	const threads = 17 // num_threads, field 20
	return who, rest[0] != "Z" && rest[0] != "X" || rest[threads] != "0" && rest[threads] != "1", nil
}

// alive reports whether this very process runs; a zombie does not.
func (p process) alive() bool {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || strings.TrimSpace(string(boot)) != p.boot {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/stat")
	if err != nil {
		return false
	}
	now, runs, err := parseStat(string(text))
	return err == nil && now.pid == p.pid && now.start == p.start && runs
}

// end asks a process to end, and kills it after the grace time. It signals through
// a pidfd that was checked, so never another process that got the PID.
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
		// A stopped process (SIGSTOP) handles only SIGKILL: continue it.
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

// waitEnd waits until the pidfd becomes readable, which happens when the process
// ends.
func waitEnd(ctx context.Context, fd int, p process, patience time.Duration) (bool, error) {
	for deadline := time.Now().Add(patience); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return !p.alive(), nil
		}
		// Polls are short, so that the end of the context is noticed.
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

// maxLog is the size in bytes at which a log is truncated; the older part is kept
// in one file beside it.
const maxLog = 8 << 20

// trim keeps a log within its limit. The program continues to write with O_APPEND,
// so its file is copied and truncated, not renamed; lines written between the two
// are lost.
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
		// The disk is full: the log is dropped first.
		return errors.Join(os.Remove(path+".1"), os.Truncate(path, 0))
	}
	return os.Truncate(path, 0)
}

// tail returns the last complete lines of a file, at most limit bytes.
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
