package worker

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// doorbell is what the issuer sleeps on: the carrier, an eventfd that the worker
// rings, and an eventfd that the guest has. The guest can do anything to its own
// that a descriptor allows, such as filling it or making it block, so the worker
// only waits for its edges and never reads or writes it. Only the issuer may call
// the methods, except ring.
type doorbell struct {
	epoll int
	own   int // eventfd
	guest int // eventfd; shared
}

// newDoorbell returns a doorbell that also wakes when the carrier can be read.
func newDoorbell(carrier syscall.RawConn) (b *doorbell, err error) {
	b = &doorbell{epoll: -1, own: -1, guest: -1}
	defer func() {
		if err != nil {
			b.close()
			b, err = nil, fmt.Errorf("create doorbell: %w", err)
		}
	}()
	if b.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return b, err
	}
	if b.own, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return b, err
	}
	if b.guest, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return b, err
	}
	var added error
	err = carrier.Control(func(fd uintptr) { added = b.add(int(fd), unix.EPOLLIN) })
	return b, errors.Join(err, added, b.add(b.own, unix.EPOLLIN|unix.EPOLLET), b.add(b.guest, unix.EPOLLIN|unix.EPOLLET))
}

func (b *doorbell) add(fd int, events uint32) error {
	return unix.EpollCtl(b.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// ring wakes the issuer; any goroutine may call it until close.
func (b *doorbell) ring() { _, _ = unix.Write(b.own, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// wait sleeps until the doorbell is rung, the carrier is readable, or d has
// passed. It reports whether the carrier must be read: when it is readable, or
// when d has passed.
func (b *doorbell) wait(d time.Duration) (carrier bool, err error) {
	var events [3]unix.EpollEvent
	n, err := unix.EpollWait(b.epoll, events[:], int(d/time.Millisecond))
	if err != nil {
		if errors.Is(err, unix.EINTR) {
			return true, nil
		}
		return true, fmt.Errorf("wait for doorbell: %w", err)
	}
	for _, e := range events[:n] {
		if int(e.Fd) != b.own && int(e.Fd) != b.guest {
			carrier = true
		}
	}
	return carrier || n == 0, nil
}

func (b *doorbell) close() {
	for _, fd := range []int{b.epoll, b.own, b.guest} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
