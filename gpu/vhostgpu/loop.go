package vhostgpu

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Loop is an epoll loop for one goroutine.
type Loop struct {
	epoll    int
	handlers map[int]func(events uint32)
}

// NewLoop returns an empty loop.
func NewLoop() (*Loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("set up epoll: %w", err)
	}
	return &Loop{fd, map[int]func(uint32){}}, nil
}

// Add registers f, which Poll calls whenever fd is ready for one of events
// (level-triggered).
func (l *Loop) Add(fd int, events uint32, f func(events uint32)) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("set up epoll: %w", err)
	}
	l.handlers[fd] = f
	return nil
}

// Modify changes the events that fd is watched for.
func (l *Loop) Modify(fd int, events uint32) {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, fd, &ev)
}

// Remove stops watching fd. It must be called before fd is closed.
func (l *Loop) Remove(fd int) {
	if _, ok := l.handlers[fd]; ok {
		delete(l.handlers, fd)
		_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// Poll waits for events, at most for d if that is not negative, and calls
// their handlers.
func (l *Loop) Poll(d time.Duration) error {
	ms := -1
	if d >= 0 {
		ms = int((d + time.Millisecond - 1) / time.Millisecond)
	}
	var events [32]unix.EpollEvent
	n, err := unix.EpollWait(l.epoll, events[:], ms)
	if errors.Is(err, unix.EINTR) {
		return nil
	} else if err != nil {
		return fmt.Errorf("set up epoll: %w", err)
	}
	for _, ev := range events[:n] {
		// A handler may have removed a later one. A descriptor that was closed
		// and opened again in between gets a spurious event, which all handlers
		// tolerate: they read without blocking.
		if f := l.handlers[int(ev.Fd)]; f != nil {
			f(ev.Events)
		}
	}
	return nil
}

// Close ends the loop; the descriptors on it stay open.
func (l *Loop) Close() error { return unix.Close(l.epoll) }
