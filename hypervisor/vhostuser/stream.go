package vhostuser

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// ErrTooMuch means that the peer does not read what was sent to it.
var ErrTooMuch = errors.New("send queue is full: the peer is not reading")

// Frame returns the number of bytes that follow a header, or an error if they
// are too many.
type Frame func(header []byte) (int, error)

// Stream frames messages with file descriptors on a non-blocking unix stream
// socket. A partly read message and unsent data are plain data (StreamState),
// so that a stream can be handed over to another program between any two
// system calls.
//
// It never reads past the end of a message: the kernel may attach the next
// message's file descriptors to the bytes read, and they could not be assigned
// to their message.
type Stream struct {
	fd     int
	header int
	frame  Frame
	maxFDs int
	limit  int // bytes in out
	in     []byte
	inFDs  []int
	out    []Outgoing
	queued int
}

// Outgoing is a message, or the rest of one, that is still to be written. Its
// file descriptors are closed after they are sent.
type Outgoing struct {
	Bytes []byte
	FDs   []int
}

// NewStream takes ownership of fd. Headers have header bytes; a message has at
// most maxFDs file descriptors; at most limit bytes are queued for a slow
// reader.
func NewStream(fd, header int, frame Frame, maxFDs, limit int) (*Stream, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("set socket non-blocking: %w", err)
	}
	return &Stream{fd: fd, header: header, frame: frame, maxFDs: maxFDs, limit: limit}, nil
}

// FD returns the socket, for polling.
func (s *Stream) FD() int { return s.fd }

// Read returns the next whole message and its file descriptors; nil if there
// is none yet; io.EOF if the peer has closed the connection.
func (s *Stream) Read() (message []byte, fds []int, err error) {
	for {
		want := s.header
		if len(s.in) >= s.header {
			body, err := s.frame(s.in[:s.header])
			if err != nil {
				return nil, nil, err
			}
			want += body
			if len(s.in) == want {
				message, fds = s.in, s.inFDs
				s.in, s.inFDs = nil, nil
				return message, fds, nil
			}
		}
		if err := s.fill(want - len(s.in)); errors.Is(err, unix.EAGAIN) {
			return nil, nil, nil
		} else if err != nil {
			return nil, nil, err
		}
	}
}

// fill reads up to n bytes of the current message.
func (s *Stream) fill(n int) error {
	b := make([]byte, min(n, 64<<10))
	oob := make([]byte, unix.CmsgSpace(4*(s.maxFDs+1)))
	got, oobn, flags, _, err := unix.Recvmsg(s.fd, b, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case errors.Is(err, unix.ECONNRESET):
		return io.EOF
	case err != nil:
		return err
	}
	cmsgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return fmt.Errorf("parse control message: %w", err)
	}
	for i := range cmsgs {
		fds, err := unix.ParseUnixRights(&cmsgs[i])
		if err != nil {
			return fmt.Errorf("parse control message: %w", err)
		}
		s.inFDs = append(s.inFDs, fds...)
	}
	if flags&unix.MSG_CTRUNC != 0 || len(s.inFDs) > s.maxFDs {
		return fmt.Errorf("message has too many descriptors, want at most %d", s.maxFDs)
	}
	if got == 0 {
		return io.EOF
	}
	s.in = append(s.in, b[:got]...)
	return nil
}

// Write sends a message, or queues what the socket does not accept now. It
// does not duplicate the file descriptors: they are closed once sent.
func (s *Stream) Write(message []byte, fds ...int) error {
	if s.queued+len(message) > s.limit {
		closeAll(fds)
		return ErrTooMuch
	}
	s.out = append(s.out, Outgoing{message, fds})
	s.queued += len(message)
	return s.Flush()
}

// Pending reports whether messages are queued.
func (s *Stream) Pending() bool { return len(s.out) > 0 }

// Flush writes as much as the socket accepts without blocking.
func (s *Stream) Flush() error {
	for len(s.out) > 0 {
		o := &s.out[0]
		var oob []byte
		if len(o.FDs) > 0 {
			oob = unix.UnixRights(o.FDs...)
		}
		n, err := unix.SendmsgN(s.fd, o.Bytes, oob, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return err
		}
		closeAll(o.FDs)
		o.FDs, o.Bytes = nil, o.Bytes[n:]
		s.queued -= n
		if len(o.Bytes) == 0 {
			s.out = s.out[1:]
		}
	}
	return nil
}

// Close closes the socket and every file descriptor of queued or partly read
// messages.
func (s *Stream) Close() error {
	closeAll(s.inFDs)
	for _, o := range s.out {
		closeAll(o.FDs)
	}
	s.in, s.inFDs, s.out, s.queued = nil, nil, nil, 0
	return unix.Close(s.fd)
}

// StreamState is the state of a stream for a handover.
type StreamState struct {
	FD    int
	In    []byte
	InFDs []int
	Out   []Outgoing
}

// State returns what Restore needs to continue the stream.
func (s *Stream) State() StreamState { return StreamState{s.fd, s.in, s.inFDs, s.out} }

// Restore sets the state of a new stream.
func (s *Stream) Restore(st StreamState) {
	s.in, s.inFDs, s.out = st.In, st.InFDs, st.Out
	for _, o := range s.out {
		s.queued += len(o.Bytes)
	}
}

// FDs returns all file descriptors of the state.
func (st StreamState) FDs() []int {
	fds := append([]int{st.FD}, st.InFDs...)
	for _, o := range st.Out {
		fds = append(fds, o.FDs...)
	}
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// NewServerStream returns a stream of vhost-user messages.
func NewServerStream(fd int) (*Stream, error) {
	return NewStream(fd, headerSize, payloadSize, MaxFDs, 64<<10)
}

// ReadMessage returns the stream's next message; nil if there is none yet.
func ReadMessage(s *Stream) (*Message, error) {
	frame, fds, err := s.Read()
	if err != nil || frame == nil {
		return nil, err
	}
	m, err := decode(frame, fds)
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	return &m, nil
}
