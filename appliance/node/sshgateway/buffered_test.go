package sshgateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// gated is a connection whose writes wait for the gate.
type gated struct {
	net.Conn
	gate    chan struct{} // one value for each write; all pass when it is closed
	ended   chan struct{} // closed by Close
	written [][]byte
	fails   error
}

func newGated() *gated { return &gated{gate: make(chan struct{}), ended: make(chan struct{})} }

func (g *gated) Write(p []byte) (int, error) {
	select {
	case <-g.gate:
	case <-g.ended:
		return 0, net.ErrClosed
	}
	if g.fails != nil {
		return 0, g.fails
	}
	g.written = append(g.written, bytes.Clone(p))
	return len(p), nil
}

func (g *gated) Close() error {
	close(g.ended)
	return nil
}

func mustWrite(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); n != len(s) || err != nil {
		t.Fatalf("Write(%q) = %d, %v; want %d without error", s, n, err, len(s))
	}
}

// TestBufferedWrites checks that what is written while a write is under way is sent by one
// further write, in order, and that Close sends it.
func TestBufferedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		b := buffer(g)
		mustWrite(t, b, "first ")
		synctest.Wait() // it is under way
		for _, s := range []string{"second ", "third ", "fourth"} {
			mustWrite(t, b, s)
		}
		g.gate <- struct{}{}
		close(g.gate)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if got := string(bytes.Join(g.written, []byte("|"))); got != "first |second third fourth" {
			t.Errorf("writes = %q, want the first alone and the others together", got)
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write after Close: error %v, want %v", err, net.ErrClosed)
		}
	})
}

// TestBufferedWritesAreLimited checks that a peer which does not read stops the writer.
func TestBufferedWritesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		b := buffer(g)
		data := bytes.Repeat([]byte("0123456789abcdef"), maxBuffer/4)
		sent := 0
		go func() {
			for piece := range slices.Chunk(data, 1000) {
				n, err := b.Write(piece)
				if err != nil {
					t.Error(err)
				}
				sent += n
			}
			_ = b.Close()
		}()
		synctest.Wait()
		if most := 2 * maxBuffer; sent > most { // one buffer under way, one waiting
			t.Errorf("%d bytes accepted without a reader, want at most %d", sent, most)
		}
		close(g.gate)
		<-b.flushed
		for _, w := range g.written {
			if len(w) > maxBuffer {
				t.Errorf("write of %d bytes, want at most %d", len(w), maxBuffer)
			}
		}
		if got := bytes.Join(g.written, nil); !bytes.Equal(got, data) {
			t.Errorf("%d bytes sent, want the same %d that were written", len(got), len(data))
		}
	})
}

// TestBufferedFails checks that a failed write is reported by the next one, and wakes a writer
// that waits.
func TestBufferedFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		g.fails = errors.New("connection reset")
		b := buffer(g)
		mustWrite(t, b, "taken")
		synctest.Wait()
		waiting := make(chan error)
		go func() {
			var err error
			for err == nil {
				_, err = b.Write(make([]byte, maxBuffer))
			}
			waiting <- err
		}()
		synctest.Wait()
		close(g.gate)
		if err := <-waiting; !errors.Is(err, g.fails) {
			t.Errorf("Write that waited for a failed one: error %v, want %v", err, g.fails)
		}
		_ = b.Close()
	})
}

// TestBufferedClose checks that Close does not wait for ever for a peer that does not read, and
// that nothing is read any more meanwhile.
func TestBufferedClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		near, far := net.Pipe()
		g.Conn = near
		b := buffer(g)
		mustWrite(t, b, "never read")
		go func() { _, _ = io.WriteString(far, "two") }()
		first := make([]byte, 1)
		if _, err := io.ReadFull(b, first); err != nil || first[0] != 't' {
			t.Fatalf("Read = %q, %v; want t", first, err)
		}
		began := time.Now()
		closed := make(chan error)
		go func() { closed <- b.Close() }()
		synctest.Wait()
		if n, err := b.Read(first); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read after Close = %d, %v; want %v", n, err, net.ErrClosed)
		}
		if err := <-closed; err != nil || time.Since(began) != flushTime {
			t.Errorf("Close without a reader: error %v after %v, want none after %v", err, time.Since(began), flushTime)
		}
		<-b.flushed
		_ = near.Close()
	})
}

// TestBufferedReads checks that all bytes are read in order while the buffer grows, and then
// the end.
func TestBufferedReads(t *testing.T) {
	near, far := net.Pipe()
	data := bytes.Repeat([]byte("0123456789abcdef"), maxBuffer/4)
	go func() {
		_, _ = far.Write(data)
		_ = far.Close()
	}()
	b := buffer(near)
	defer b.Close()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes, error %v; want the same %d that were sent, and EOF", len(got), err, len(data))
	}
	if len(b.in) != maxBuffer {
		t.Errorf("buffer has %d bytes after a long transfer, want %d", len(b.in), maxBuffer)
	}
}
