package stdio

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limit is how many bytes of a stream are held until they are taken. What is written
// later replaces the oldest, as in the buffer of CUDA's printf (CUDA C++ Programming
// Guide, "Formatted Output", "Limitations").
const Limit = 16 << 20

// readBytes is the maximum of one read from a pipe.
const readBytes = 64 << 10

// stream is the reading end of a pipe, and what was read from it.
type stream struct {
	to   uint32 // abi.Output…
	size int    // of the pipe, in bytes
	pipe *os.File
	raw  syscall.RawConn

	mu      sync.Mutex // guards the following, and the order of reads
	buffer  []byte     // for reads
	texts   [][]byte   // oldest first
	held    int        // their bytes
	dropped uint64     // bytes, since the last take
}

// empty reads the pipe until it is closed.
func (s *stream) empty() {
	_ = s.raw.Read(func(fd uintptr) (ended bool) {
		for {
			if n, err := s.read(int(fd)); errors.Is(err, unix.EAGAIN) {
				return false
			} else if n == 0 {
				return true
			}
		}
	})
}

// read reads until the pipe is empty, and at most what fits into it, because others may
// write all the time. It returns the number of bytes.
func (s *stream) read(fd int) (total int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for total < s.size {
		n, err := unix.Read(fd, s.buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return total, err
		}
		total += n
		s.add(s.buffer[:n])
	}
	return total, nil
}

// add stores a copy of a text, in as few pieces as possible.
func (s *stream) add(text []byte) {
	if last := len(s.texts) - 1; last >= 0 && len(s.texts[last])+len(text) <= readBytes {
		s.texts[last] = append(s.texts[last], text...)
	} else {
		s.texts = append(s.texts, bytes.Clone(text))
	}
	for s.held += len(text); s.held > Limit; s.texts = s.texts[1:] {
		n := len(s.texts[0])
		s.texts[0] = nil // so that the array does not keep the text alive
		s.held -= n
		s.dropped += uint64(n)
	}
}

// take returns what was written before the call and has not been taken, and how many
// bytes were dropped.
func (s *stream) take() (texts [][]byte, dropped uint64) {
	_ = s.raw.Control(func(fd uintptr) { _, _ = s.read(int(fd)) })
	s.mu.Lock()
	defer s.mu.Unlock()
	texts, dropped = s.texts, s.dropped
	s.texts, s.held, s.dropped = nil, 0, 0
	return texts, dropped
}
