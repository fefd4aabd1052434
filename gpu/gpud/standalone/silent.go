package standalone

import (
	"container/list"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sayWithin is how long a program may take from connecting to sending its
	// first byte.
	sayWithin = 5 * time.Second
	// maxSilent is the number of silent connections that are kept: with one more,
	// the oldest is closed.
	maxSilent = 256
)

// silent is the set of connections that have sent nothing yet. They cost a
// descriptor and no worker, so opening many of them does not keep out others.
type silent struct {
	mu    sync.Mutex
	conns *list.List // of *net.UnixConn, oldest first
}

func newSilent() *silent { return &silent{conns: list.New()} }

// await waits for the first byte and leaves it unread. On an error there is none,
// and the connection is closed.
func (s *silent) await(conn *net.UnixConn) error {
	s.mu.Lock()
	e := s.conns.PushBack(conn)
	if s.conns.Len() > maxSilent {
		oldest := s.conns.Front()
		s.conns.Remove(oldest)
		_ = oldest.Value.(*net.UnixConn).Close()
	}
	s.mu.Unlock()
	err := errors.Join(conn.SetReadDeadline(time.Now().Add(sayWithin)), peek(conn), conn.SetReadDeadline(time.Time{}))
	s.mu.Lock()
	s.conns.Remove(e) // no effect if it was removed as the oldest
	s.mu.Unlock()
	if err != nil {
		_ = conn.Close()
	}
	return err
}

// close closes all silent connections.
func (s *silent) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.conns.Front(); e != nil; e = e.Next() {
		_ = e.Value.(*net.UnixConn).Close()
	}
}

// peek waits for a byte and leaves it unread.
func peek(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var got error
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			return false
		case err == nil && n == 0:
			err = io.EOF
		}
		got = err
		return true
	})
	return errors.Join(err, got)
}
