// Package carrier sends and receives carrier messages (package abi) over a unix
// stream socket, with their file descriptors.
//
// A Reader and a Writer of one connection may be used by two goroutines, but each
// of them by one goroutine at a time. Received descriptors belong to the Message
// until it is closed.
package carrier

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Message is one carrier message.
type Message struct {
	Type     uint16
	Flags    uint16
	Argument uint32
	Body     []byte
	FDs      []int
}

// Close closes the message's descriptors.
func (m *Message) Close() {
	for _, fd := range m.FDs {
		_ = unix.Close(fd)
	}
	m.FDs = nil
}

// Write sends m. It blocks while the socket is full; it does not close m.FDs.
func Write(c *net.UnixConn, m Message) error {
	if len(m.Body) > abi.MaxCarrierBody || len(m.FDs) > abi.MaxCarrierFDs {
		return fmt.Errorf("%w: too large: %d bytes, %d descriptors", abi.ErrMessage, len(m.Body), len(m.FDs))
	}
	var oob []byte
	if len(m.FDs) > 0 {
		oob = unix.UnixRights(m.FDs...)
	}
	h := abi.CarrierHeader{Type: m.Type, Flags: m.Flags, Length: uint32(len(m.Body)), Argument: m.Argument}
	b := append(h.Append(make([]byte, 0, abi.CarrierHeaderSize+len(m.Body))), m.Body...)
	n, _, err := c.WriteMsgUnix(b, oob, nil)
	if err != nil || n == len(b) {
		return err
	}
	_, err = c.Write(b[n:]) // the descriptors were sent with the first byte
	return err
}

// TryWrite sends m, which has neither body nor descriptors, unless the socket
// is full; it never waits.
func TryWrite(raw syscall.RawConn, m Message) (sent bool, err error) {
	h := abi.CarrierHeader{Type: m.Type, Flags: m.Flags, Argument: m.Argument}
	var buf [abi.CarrierHeaderSize]byte
	b := h.Append(buf[:0])
	if e := raw.Control(func(fd uintptr) {
		err = unix.Sendmsg(int(fd), b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}); e != nil {
		return false, e
	}
	if errors.Is(err, unix.EAGAIN) {
		return false, nil
	}
	return err == nil, err
}

// Reader reads messages from a connection. A message that arrives in parts is
// kept until it is complete.
type Reader struct {
	raw    syscall.RawConn
	header [abi.CarrierHeaderSize]byte
	have   int // bytes of the header, then of the body
	body   []byte
	msg    Message
	inBody bool
	oob    []byte
	err    error // sticky
}

// NewReader returns a Reader of c.
func NewReader(c *net.UnixConn) (*Reader, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	// One more than allowed, so that too many descriptors are detected.
	return &Reader{raw: raw, oob: make([]byte, unix.CmsgSpace(4*(abi.MaxCarrierFDs+1)))}, nil
}

// Read waits for the next message, under the connection's read deadline.
// Errors: io.EOF after the last message, abi.ErrMessage for a bad one.
func (r *Reader) Read() (m Message, err error) {
	var ok bool
	e := r.raw.Read(func(fd uintptr) bool {
		m, ok, err = r.take(int(fd))
		return ok || err != nil
	})
	if err == nil && !ok {
		err = e
	}
	return m, err
}

// TryRead returns the next message if it has arrived completely; otherwise ok is
// false.
func (r *Reader) TryRead() (m Message, ok bool, err error) {
	if e := r.raw.Control(func(fd uintptr) { m, ok, err = r.take(int(fd)) }); e != nil {
		return m, false, e
	}
	return m, ok, err
}

// Close closes the descriptors of a message that is not complete.
func (r *Reader) Close() {
	r.msg.Close()
	if r.err == nil {
		r.err = net.ErrClosed
	}
}

func (r *Reader) take(fd int) (Message, bool, error) {
	for r.err == nil {
		part := r.header[:]
		if r.inBody {
			part = r.body
		}
		want := part[r.have:]
		if len(want) > 0 {
			n, again, err := r.recv(fd, want)
			if again {
				return Message{}, false, nil
			}
			r.have += n
			if err != nil {
				r.fail(err)
				break
			}
			if n < len(want) {
				continue
			}
		}
		if r.inBody {
			m := r.msg
			m.Body = r.body
			r.msg, r.body, r.have, r.inBody = Message{}, nil, 0, false
			return m, true, nil
		}
		h, err := abi.DecodeCarrierHeader(r.header[:])
		if err != nil {
			r.fail(err)
			break
		}
		r.msg.Type, r.msg.Flags, r.msg.Argument = h.Type, h.Flags, h.Argument
		r.body, r.have, r.inBody = make([]byte, h.Length), 0, true
	}
	return Message{}, false, r.err
}

func (r *Reader) fail(err error) {
	r.msg.Close()
	r.err = err
}

// recv reads into p without blocking; again reports that nothing was available.
func (r *Reader) recv(fd int, p []byte) (n int, again bool, err error) {
	var oobn, flags int
	for {
		n, oobn, flags, _, err = unix.Recvmsg(fd, p, r.oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EAGAIN) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	if oobn > 0 {
		first := !r.inBody && r.have == 0
		if err := r.adopt(r.oob[:oobn], first); err != nil {
			return n, false, err
		}
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return n, false, fmt.Errorf("%w: too many descriptors, want at most %d", abi.ErrMessage, abi.MaxCarrierFDs)
	}
	if n == 0 {
		if r.have > 0 || r.inBody {
			return 0, false, io.ErrUnexpectedEOF
		}
		return 0, false, io.EOF
	}
	return n, false, nil
}

// adopt takes the descriptors from control data; Message.Close closes all of
// them, even when adopt returns an error.
func (r *Reader) adopt(oob []byte, first bool) error {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("%w: %w", abi.ErrMessage, err)
	}
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			continue // other control data, for example credentials
		}
		r.msg.FDs = append(r.msg.FDs, fds...)
	}
	if len(r.msg.FDs) > abi.MaxCarrierFDs || len(r.msg.FDs) > 0 && !first {
		return fmt.Errorf("%w: %d unexpected descriptors", abi.ErrMessage, len(r.msg.FDs))
	}
	return nil
}
