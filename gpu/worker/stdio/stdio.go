// Package stdio collects what the C libraries of a process write to its stdout and
// stderr: libcuda writes there what a tenant's kernels print.
//
//	kernel ─► libcuda ─► descriptors 1 and 2 ─► pipes ─► Capture ─► Take
//
// A goroutine per stream empties the pipe, so that a library that writes without end does
// not wait for a reader. Capture holds at most Limit bytes per stream, and counts what it
// drops.
package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// The original os.Stdout and os.Stderr. If they became garbage, the descriptors 1 and 2
// would be closed.
var first [2]*os.File

// Separate gives os.Stdout and os.Stderr descriptors of their own, so that this program's
// output does not mix with that of its C libraries. It must be called once, before
// anything keeps os.Stdout or os.Stderr.
func Separate() error {
	for i, f := range []**os.File{&os.Stdout, &os.Stderr} {
		fd, err := unix.FcntlInt(uintptr(i+1), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return fmt.Errorf("duplicate descriptor %d: %w", i+1, err)
		}
		first[i], *f = *f, os.NewFile(uintptr(fd), (*f).Name())
	}
	log.SetOutput(os.Stderr)
	return nil
}

// Capture collects what is written to descriptors 1 and 2.
type Capture struct{ out, err *stream }

// Start replaces descriptors 1 and 2 by pipes for the rest of the process's life, after
// Separate; later calls return the same Capture. The runtime's own messages at a crash
// still appear on os.Stderr.
func Start() (*Capture, error) { return started() }

var started = sync.OnceValues(func() (*Capture, error) {
	c, err := start()
	if err == nil {
		running.Store(c)
	}
	return c, err
})

var running atomic.Pointer[Capture] // nil before Start

func start() (*Capture, error) {
	if first[0] == nil {
		return nil, errors.New("os.Stdout and os.Stderr have no descriptors of their own")
	}
	if err := debug.SetCrashOutput(os.Stderr, debug.CrashOptions{}); err != nil {
		return nil, fmt.Errorf("set the output of crashes: %w", err)
	}
	out, err := redirect(1, abi.OutputStdout, 0)
	if err != nil {
		return nil, err
	}
	// The runtime writes to descriptor 2 when nothing else runs any more, and must not
	// wait for the reader of a full pipe.
	errs, err := redirect(2, abi.OutputStderr, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &Capture{out, errs}, nil
}

// Take passes on what was written before the call and has not been taken, the oldest first,
// with abi.OutputStdout or OutputStderr. dropped is the number of bytes that did not fit.
// It may be called from several goroutines, each of which gets a part.
func (c *Capture) Take(f func(to uint32, text []byte)) (dropped uint64) {
	for _, s := range []*stream{c.out, c.err} {
		texts, n := s.take()
		dropped += n
		for _, text := range texts {
			f(s.to, text)
		}
	}
	return dropped
}

// Left returns the end of what was written to stderr and not taken, at most that many bytes:
// messages of libcuda that are not about a kernel's output. It returns nothing before Start.
func Left(most int) []byte {
	c := running.Load()
	if c == nil {
		return nil
	}
	texts, _ := c.err.take()
	all := bytes.Join(texts, nil)
	return all[max(0, len(all)-most):]
}

// pipeBytes is the size of a pipe, if the kernel permits it.
const pipeBytes = 1 << 20

// redirect replaces a descriptor by a pipe whose writing end has the given flags.
func redirect(fd int, to uint32, flags int) (*stream, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("create a pipe for descriptor %d: %w", fd, err)
	}
	defer func() { _ = unix.Close(ends[1]) }()
	_, _ = unix.FcntlInt(uintptr(ends[1]), unix.F_SETPIPE_SZ, pipeBytes)
	size, err := unix.FcntlInt(uintptr(ends[1]), unix.F_GETPIPE_SZ, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(ends[1]), unix.F_SETFL, flags)
	}
	if err == nil {
		err = unix.SetNonblock(ends[0], true)
	}
	if err != nil {
		_ = unix.Close(ends[0])
		return nil, fmt.Errorf("prepare the pipe for descriptor %d: %w", fd, err)
	}
	s, err := newStream(os.NewFile(uintptr(ends[0]), "pipe"), to, size)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(ends[1], fd, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("replace descriptor %d: %w", fd, err), s.pipe.Close())
	}
	go s.empty()
	return s, nil
}

// newStream returns a stream for the reading end of a pipe of size bytes.
func newStream(pipe *os.File, to uint32, size int) (*stream, error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read a pipe: %w", err), pipe.Close())
	}
	return &stream{pipe: pipe, raw: raw, to: to, size: size, buffer: make([]byte, readBytes)}, nil
}
