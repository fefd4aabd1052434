package sshgateway

import (
	"net"
	"sync"
	"time"
)

// Sizes of the buffers of a buffered connection, which grow while they are filled: those of a
// terminal stay small.
const (
	minBuffer = 4 << 10
	maxBuffer = 128 << 10
)

// flushTime limits how long Close waits until the peer has accepted what was written.
const flushTime = 5 * time.Second

// buffered is a connection with a read buffer, and a write buffer that a goroutine of its own
// writes. The SSH library reads and writes a packet of 32 KiB in two or three pieces, the first
// of them of 4 KiB, and each is a system call that wakes the peer: that needs more processor
// time than the encryption. Here, each system call transfers all that is available.
type buffered struct {
	net.Conn

	in   []byte // buffer of Read, which alone uses in and left
	left []byte // part of in that is not read yet

	mu      sync.Mutex // guards the following fields
	changed sync.Cond  // they have changed
	out     []byte     // accepted by Write, not yet taken by flush
	err     error      // of the first write that failed
	closed  bool

	flushed chan struct{} // closed when flush returns
}

// buffer returns a buffered connection, which owns c.
func buffer(c net.Conn) *buffered {
	b := &buffered{Conn: c, in: make([]byte, minBuffer), flushed: make(chan struct{})}
	b.changed.L = &b.mu
	go b.flush()
	return b
}

// Read implements net.Conn. Calls must not be concurrent.
func (b *buffered) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		n, err := b.Conn.Read(b.in)
		if n == 0 {
			return 0, err
		}
		b.left = b.in[:n]
		if n == len(b.in) && n < maxBuffer {
			b.in = make([]byte, 2*n)
		}
	}
	if b.isClosed() { // a peer whose right has ended is not heard
		return 0, net.ErrClosed
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *buffered) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Write implements net.Conn. If p cannot be sent, later calls return the error.
func (b *buffered) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.err == nil && !b.closed && len(b.out) > 0 && len(b.out)+len(p) > maxBuffer {
		b.changed.Wait()
	}
	switch {
	case b.err != nil:
		return 0, b.err
	case b.closed:
		return 0, net.ErrClosed
	}
	b.out = append(b.out, p...)
	b.changed.Broadcast()
	return len(p), nil
}

// flush sends what Write accepts, until the connection fails or is closed.
func (b *buffered) flush() {
	defer close(b.flushed)
	var taken []byte
	for {
		if taken = b.take(taken); len(taken) == 0 {
			return
		}
		if _, err := b.Conn.Write(taken); err != nil {
			b.mu.Lock()
			b.err = err
			b.changed.Broadcast()
			b.mu.Unlock()
			return
		}
	}
}

// take waits for bytes and takes them all, and leaves spare as the next buffer. It returns
// nothing when the connection is closed and all has been taken.
func (b *buffered) take(spare []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.out) == 0 && !b.closed {
		b.changed.Wait()
	}
	taken := b.out
	b.out = spare[:0]
	b.changed.Broadcast()
	return taken
}

// Close implements net.Conn. It first sends what was written, as the kernel does.
func (b *buffered) Close() error {
	b.mu.Lock()
	b.closed = true
	b.changed.Broadcast()
	b.mu.Unlock()
	late := time.NewTimer(flushTime)
	defer late.Stop()
	select {
	case <-b.flushed:
	case <-late.C:
	}
	return b.Conn.Close()
}
