package vhostgpu

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/vhostuser"
)

// Server serves one VM: it waits for QEMU to connect, and ends with that
// connection.
type Server struct {
	Device    *Device
	Session   *vhostuser.Session // nil until QEMU has connected
	loop      *Loop
	log       *slog.Logger
	path      string // of the listening socket
	listen    int    // -1 once QEMU has connected
	stream    *vhostuser.Stream
	done      bool
	err       error
	published published
	// wake is an eventfd with which other goroutines wake the loop.
	wake int
}

// Listen returns a server whose socket is at path, for this user and, if it is
// not -1, for a group: QEMU's. It replaces what an earlier process left there.
func Listen(path string, group int, spawner Spawner, limits Limits, log *slog.Logger) (*Server, error) {
	s, err := newServer(spawner, limits, log)
	if err != nil {
		return nil, err
	}
	s.path = path
	s.Device.seen.known = true        // nothing has happened yet
	_ = os.Remove(ObservedFile(path)) // of an earlier process
	if s.listen, err = listenUnix(path, group); err != nil {
		_ = s.Close()
		return nil, err
	}
	if err = s.loop.Add(s.listen, unix.EPOLLIN, func(uint32) { s.accept() }); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func newServer(spawner Spawner, limits Limits, log *slog.Logger) (*Server, error) {
	loop, err := NewLoop()
	if err != nil {
		return nil, err
	}
	s := &Server{loop: loop, log: log, listen: -1}
	s.Device = New(loop, spawner, limits, log)
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	return s, loop.Add(s.wake, unix.EPOLLIN, func(uint32) {
		var b [8]byte
		_, _ = unix.Read(s.wake, b[:])
	})
}

// listenUnix creates the socket under another name and then renames it, so that
// it can be connected to as soon as it appears at path. With a group of -1 only
// this user can connect.
func listenUnix(path string, group int) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("create socket: %w", err)
	}
	early := path + "~"
	_ = os.Remove(early)
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: early}); err == nil {
		err = unix.Listen(fd, 1)
	}
	mode := os.FileMode(0o600)
	if err == nil && group >= 0 {
		mode = 0o660
		err = os.Chown(early, -1, group)
	}
	if err == nil {
		err = os.Chmod(early, mode)
	}
	if err == nil {
		err = os.Rename(early, path)
	}
	if err != nil {
		_ = unix.Close(fd)
		_ = os.Remove(early)
		return -1, fmt.Errorf("listen on %s: %w", path, err)
	}
	return fd, nil
}

// accept accepts QEMU's connection; there is only one.
func (s *Server) accept() {
	fd, _, err := unix.Accept4(s.listen, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return
	}
	s.loop.Remove(s.listen)
	_ = unix.Close(s.listen)
	s.listen = -1
	s.Session = vhostuser.NewSession(s.Device, queueCount)
	s.log.Info("QEMU connected")
	s.attach(fd, nil)
}

// attach serves the connection fd, from the given state on.
func (s *Server) attach(fd int, st *vhostuser.StreamState) {
	var err error
	if s.stream, err = vhostuser.NewServerStream(fd); err == nil {
		if st != nil {
			s.stream.Restore(*st)
		}
		err = s.loop.Add(fd, unix.EPOLLIN, func(uint32) { s.messages() })
	}
	if err != nil {
		s.end(err)
	}
}

// messages handles what QEMU has sent.
func (s *Server) messages() {
	for !s.done {
		m, err := vhostuser.ReadMessage(s.stream)
		if err != nil {
			s.end(err)
			return
		}
		if m == nil {
			return
		}
		reply, err := s.Session.Handle(*m)
		if err == nil && reply != nil {
			err = s.stream.Write(reply)
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

func (s *Server) end(err error) {
	s.done = true
	if !errors.Is(err, io.EOF) {
		s.err = err
	}
}

// Wake makes Run check its channels. Any goroutine may call it until Close.
func (s *Server) Wake() { notify(s.wake) }

// Run serves until QEMU disconnects (nil), violates the protocol, or stop
// receives. When upgrade receives, it calls doUpgrade between two events;
// doUpgrade returns only if it failed. Call Wake after sending on a channel. When
// Run returns, the workers have ended.
func (s *Server) Run(stop, upgrade <-chan struct{}, doUpgrade func() error) error {
	for !s.done {
		select {
		case <-stop:
			s.done = true
		case <-upgrade:
			// Returns only if the upgrade did not take place.
			s.log.Error("upgrade failed, the old program continues", "err", doUpgrade())
		default:
			now := time.Now()
			if err := s.loop.Poll(soonest(s.Device.Work(now), s.publish(now))); err != nil {
				s.end(err)
			}
		}
	}
	s.shutdown()
	return s.err
}

// shutdown ends all sessions and waits for the workers: at most the grace time,
// and the time that killed processes need to end.
func (s *Server) shutdown() {
	s.Device.Reset()
	if s.Session != nil {
		s.Session.Close()
		s.Session = nil
	}
	for limit := time.Now().Add(4 * killGrace); len(s.Device.ending) > 0 && time.Now().Before(limit); {
		sleep := s.Device.Work(time.Now())
		if sleep < 0 || sleep > killGrace {
			sleep = killGrace
		}
		if s.loop.Poll(sleep) != nil {
			return
		}
	}
}

// Close frees what Run has not freed.
func (s *Server) Close() error {
	if s.stream != nil {
		s.loop.Remove(s.stream.FD())
		_ = s.stream.Close()
		s.stream = nil
	}
	if s.listen >= 0 {
		_ = unix.Close(s.listen)
		s.listen = -1
	}
	if s.path != "" {
		_ = os.Remove(s.path)
		_ = os.Remove(ObservedFile(s.path))
	}
	_ = unix.Close(s.wake)
	return s.loop.Close()
}
