package fake

import (
	"io"
	"os"
	"sync"
)

// console is a serial port whose guest echoes its input.
type console struct {
	said    func([]byte)
	release func(*console)

	mu     sync.Mutex
	cond   *sync.Cond
	buf    []byte
	hung   bool // the guest has ended
	closed bool
}

// maxConsole limits what is buffered for a reader that does not read.
const maxConsole = 1 << 20

func newConsole(said func([]byte), release func(*console)) *console {
	c := &console{said: said, release: release}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *console) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.buf) == 0 && !c.hung && !c.closed {
		c.cond.Wait()
	}
	if c.closed {
		return 0, os.ErrClosed
	}
	if len(c.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.buf)
	c.buf = c.buf[n:]
	return n, nil
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.closed || c.hung || len(c.buf)+len(p) > maxConsole {
		c.mu.Unlock()
		return 0, io.ErrClosedPipe
	}
	c.buf = append(c.buf, p...)
	c.cond.Broadcast()
	c.mu.Unlock()
	c.said(p)
	return len(p), nil
}

func (c *console) Close() error {
	c.mu.Lock()
	c.closed = true
	c.cond.Broadcast()
	c.mu.Unlock()
	c.release(c)
	return nil
}

func (c *console) hangUp() {
	c.mu.Lock()
	c.hung = true
	c.cond.Broadcast()
	c.mu.Unlock()
}
