package carrier

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

func pair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn := func(fd int) *net.UnixConn {
		f := os.NewFile(uintptr(fd), "pair")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.UnixConn)
	}
	return conn(fds[0]), conn(fds[1])
}

func reader(t testing.TB, c *net.UnixConn) *Reader {
	t.Helper()
	r, err := NewReader(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func openFDs(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func pipeFD(t testing.TB) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return int(r.Fd())
}

func TestMessagesWithDescriptors(t *testing.T) {
	a, b := pair(t)
	fd := pipeFD(t)
	before := openFDs(t)
	body := make([]byte, abi.MaxCarrierBody)
	body[len(body)-1] = 7
	sent := make(chan error, 1)
	go func() {
		err := Write(a, Message{Type: abi.MsgHello, Argument: 1, Body: []byte("hi")})
		err = errors.Join(err, Write(a, Message{Type: abi.MsgRegion, Body: body, FDs: []int{fd, fd}}))
		sent <- errors.Join(err, Write(a, Message{Type: abi.MsgKick}), a.CloseWrite())
	}()
	r := reader(t, b)
	m, err := r.Read()
	if err != nil || m.Type != abi.MsgHello || m.Argument != 1 || string(m.Body) != "hi" {
		t.Fatalf("first message = %+v, %v, want a hello with argument 1 and body hi", m, err)
	}
	m, err = r.Read()
	if err != nil || len(m.FDs) != 2 || len(m.Body) != len(body) || m.Body[len(body)-1] != 7 {
		t.Fatalf("second message: %d bytes, %d descriptors, %v; want %d bytes and 2 descriptors", len(m.Body), len(m.FDs), err, len(body))
	}
	m.Close()
	if m, err = r.Read(); err != nil || m.Type != abi.MsgKick {
		t.Fatalf("third message = %+v, %v, want a kick", m, err)
	}
	if _, err = r.Read(); !errors.Is(err, io.EOF) {
		t.Fatalf("error at the end = %v, want EOF", err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if n := openFDs(t); n != before {
		t.Errorf("%d descriptors open, want %d as before", n, before)
	}
}

func TestTryReadKeepsPieces(t *testing.T) {
	a, b := pair(t)
	r := reader(t, b)
	whole := append(abi.CarrierHeader{Type: abi.MsgHello, Length: 3}.Append(nil), "abc"...)
	for i, c := range whole {
		if _, ok, err := r.TryRead(); ok || err != nil {
			t.Fatalf("TryRead after %d bytes = %v, %v, want false", i, ok, err)
		}
		if _, err := a.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
	}
	if m, ok, err := r.TryRead(); !ok || err != nil || string(m.Body) != "abc" {
		t.Fatalf("TryRead of the complete message = %+v, %v, %v, want body abc", m, ok, err)
	}
}

func TestBadInputClosesDescriptors(t *testing.T) {
	fd := pipeFD(t)
	many := make([]int, abi.MaxCarrierFDs+1)
	flood := make([]int, 64)
	for i := range flood {
		flood[i] = fd
	}
	copy(many, flood)
	for name, send := range map[string]func(c *net.UnixConn){
		"bad magic":            func(c *net.UnixConn) { c.WriteMsgUnix(make([]byte, 16), unix.UnixRights(fd), nil) },
		"long body":            func(c *net.UnixConn) { c.Write(abi.CarrierHeader{Length: abi.MaxCarrierBody + 1}.Append(nil)) },
		"too many descriptors": func(c *net.UnixConn) { c.WriteMsgUnix(abi.CarrierHeader{}.Append(nil), unix.UnixRights(many...), nil) },
		"flood of descriptors": func(c *net.UnixConn) { c.WriteMsgUnix(abi.CarrierHeader{}.Append(nil), unix.UnixRights(flood...), nil) },
		"descriptors too late": func(c *net.UnixConn) {
			b := abi.CarrierHeader{Length: 4}.Append(nil)
			c.Write(b)
			c.WriteMsgUnix([]byte("body"), unix.UnixRights(fd), nil)
		},
		"end within a message": func(c *net.UnixConn) {
			c.WriteMsgUnix(abi.CarrierHeader{Length: 9}.Append(nil), unix.UnixRights(fd), nil)
		},
	} {
		a, b := pair(t)
		before := openFDs(t)
		send(a)
		a.CloseWrite()
		r := reader(t, b)
		b.SetReadDeadline(time.Now().Add(10 * time.Second))
		if m, err := r.Read(); !errors.Is(err, abi.ErrMessage) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: Read = %+v, %v, want an error", name, m, err)
		}
		if n := openFDs(t); n != before {
			t.Errorf("%s: %d descriptors open, want %d as before", name, n, before)
		}
	}
}

func TestTryWriteNeverBlocks(t *testing.T) {
	a, b := pair(t)
	raw, err := a.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for range 100_000 { // far more than a socket can buffer
		if _, err := TryWrite(raw, Message{Type: abi.MsgWake}); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	r := reader(t, b)
	for n := 0; ; n++ {
		m, err := r.Read()
		if errors.Is(err, io.EOF) && n > 0 {
			break
		}
		if err != nil || m.Type != abi.MsgWake {
			t.Fatalf("message %d = %+v, %v, want a wake", n, m, err)
		}
	}
	if _, err := TryWrite(raw, Message{Type: abi.MsgWake}); err == nil {
		t.Error("TryWrite to a closed connection returned no error")
	}
}

func FuzzReader(f *testing.F) {
	f.Add(append(abi.CarrierHeader{Type: abi.MsgHello, Length: 3}.Append(nil), "abc"...))
	f.Add([]byte("nothing of ours"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return // more than the socket can buffer at once
		}
		x, y := pair(t)
		x.Write(b)
		x.CloseWrite()
		y.SetReadDeadline(time.Now().Add(10 * time.Second))
		r := reader(t, y)
		for {
			m, err := r.Read()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("Read did not return before the deadline")
			}
			if err != nil {
				return
			}
			m.Close()
		}
	})
}
