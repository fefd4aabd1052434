package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
)

// helloTime is how long a guest may take from connecting to announcing region 0.
const helloTime = 10 * time.Second

// errLeft means that the guest closed the connection, which is the normal end of
// a session.
var errLeft = errors.New("the guest closed the connection")

// greet handles MsgHello and MsgRegion 0 and answers with MsgReady. Errors in
// these messages are reported in MsgRefused and returned.
func (s *Session) greet(ctx context.Context) error {
	err := s.handshake(ctx)
	if err == nil || errors.Is(err, errLeft) || ctx.Err() != nil {
		return err
	}
	r := resultOf(err)
	var p *ProtocolError
	if errors.As(err, &p) {
		r = abi.ErrInvalidValue
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = carrier.Write(s.conn, carrier.Message{Type: abi.MsgRefused, Argument: uint32(r), Body: []byte(err.Error())})
	return err
}

func (s *Session) handshake(ctx context.Context) error {
	if err := s.conn.SetReadDeadline(time.Now().Add(helloTime)); err != nil {
		return err
	}
	interrupt := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer interrupt()
	m, err := s.reader.Read()
	if err != nil {
		return ended(err)
	}
	m.Close()
	if m.Type != abi.MsgHello {
		return protocol("message %d before hello", m.Type)
	}
	hello, err := abi.DecodeHello(m.Body)
	if err != nil {
		return protocol("%v", err)
	}
	if hello.Major != abi.Major || hello.Minor > abi.Minor {
		return fmt.Errorf("%w: the guest library has protocol version %d.%d, this host supports %d.0 to %d.%d: update the older of the two",
			abi.ErrDriverMismatch, hello.Major, hello.Minor, abi.Major, abi.Major, abi.Minor)
	}
	s.byMessage = m.Argument&abi.HelloWakeByMessage != 0
	if s.opts.OnHello != nil {
		s.opts.OnHello(hello)
	}
	if m, err = s.reader.Read(); err != nil {
		return ended(err)
	}
	defer m.Close()
	if m.Type != abi.MsgRegion || m.Argument != 0 {
		return protocol("message %d after hello, want region 0", m.Type)
	}
	return s.openRegion0(m, hello)
}

func (s *Session) openRegion0(m carrier.Message, hello abi.Hello) error {
	a, err := readRegion(m, !s.byMessage)
	if err != nil {
		return err
	}
	if a.Placed {
		return protocol("region 0 has address %#x, but there is no address window yet", a.Address)
	}
	mapping, err := mapAnywhere(0, a)
	if err != nil {
		return err
	}
	if mapping.Size() < abi.HeaderSize {
		mapping.Close()
		return protocol("region 0 has invalid size of %d bytes", mapping.Size())
	}
	l := readLayout(mapping)
	if err := l.check(mapping.Size(), hello.Major, hello.Minor); err != nil {
		mapping.Close()
		return protocol("region 0: %v", err)
	}
	offered, err := readWindows(mapping, hello.Minor)
	if err != nil {
		mapping.Close()
		return protocol("region 0: %v", err)
	}
	// From here on releaseAll closes the mapping, and fail writes the reason into it.
	s.shared, s.layout = mapping, l
	if s.window, err = chooseWindow(offered); err != nil {
		return err
	}
	if driver, ok := s.driver.(Keeper); ok {
		driver.KeepIn(s.window)
	}
	s.ring = mapping.Bytes(l.ring, l.ringSize)
	if driver, ok := s.driver.(Stager); ok && l.chunkCount > 0 {
		driver.Stage(mapping.Bytes(l.arena, l.chunkCount*l.chunkSize))
	}
	mapping.Store64(abi.OffTail, 0)
	mapping.Store64(abi.OffWindowBase, s.window.Base)
	mapping.Store64(abi.OffWindowSize, s.window.Size)
	mapping.Store32(abi.OffWorkerMinor, abi.Minor)
	mapping.Store32(abi.OffFeatures, s.host.Limits().features())
	mapping.Store64(abi.OffHeartbeat, 1)
	mapping.Store32(abi.OffState, abi.StateReady)
	ready := carrier.Message{Type: abi.MsgReady, Argument: abi.Minor}
	if !s.byMessage {
		ready.FDs = []int{s.doorbell.guest}
	}
	if err := carrier.Write(s.conn, ready); err != nil {
		return fmt.Errorf("report to the guest that the worker is ready: %w", err)
	}
	return nil
}

// ended converts the errors with which a connection ends to errLeft.
func ended(err error) error {
	if errors.Is(err, abi.ErrMessage) {
		return protocol("%v", err)
	}
	if isTimeout(err) {
		return fmt.Errorf("%w: no hello within %v", abi.ErrUnavailable, helloTime)
	}
	return fmt.Errorf("%w: %w", errLeft, err)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
