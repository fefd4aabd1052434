package standalone

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
)

// TestMain runs the tests. The test binary is also the worker, which echoes its
// arguments and then what it reads from descriptor 3.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "--carrier-fd" {
		f := os.NewFile(3, "carrier")
		token, _ := wire.TakeToken(4)
		if _, err := codecache.Open(5); err != nil {
			token = err.Error()
		}
		_, _ = f.WriteString(strings.Join(os.Args[1:], " ") + " " + token + "\n")
		_, _ = io.Copy(f, f)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func start1(t *testing.T, limit int) (socket string, stop func()) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Listener: l, Worker: os.Args[0], Control: "ctl", MaxWorkers: limit, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx, "secret") }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ran:
			if err != nil {
				t.Error(err)
			}
		case <-patience.After(20 * time.Second):
			t.Error("Run did not return within 20s after the context ended")
		}
	}
	t.Cleanup(stop)
	return socket, stop
}

func dial(t *testing.T, socket string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	patience.Limit(t, 20*time.Second, c)
	return c
}

func read(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const hello = "hello"

// say sends the first bytes of a program: without any it gets no worker.
func say(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Write([]byte(hello)); err != nil {
		t.Fatal(err)
	}
}

const greeting = "--carrier-fd 3 --token-fd 4 --gpud ctl --vgpu standalone --cache-fd 5 secret\n"

func TestEachConnectionIsAWorker(t *testing.T) {
	socket, stop := start1(t, 2)
	a, b := dial(t, socket), dial(t, socket)
	for _, c := range []net.Conn{a, b} {
		say(t, c)
		if got := read(t, c, len(greeting)); got != greeting {
			t.Fatalf("first worker wrote %q, want %q", got, greeting)
		}
		_, _ = c.Write([]byte("ping"))
		if got := read(t, c, len(hello)+4); got != hello+"ping" {
			t.Fatalf("first worker wrote %q, want %q", got, hello+"ping")
		}
	}
	// A third worker is one too many, until one of the first two ends.
	third := dial(t, socket)
	say(t, third)
	if n, err := third.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read from a third connection = %d, %v, want it closed", n, err)
	}
	_ = a.Close()
	patience.Until(t, 20*time.Second, "the place of a worker that ended is free", func() bool {
		c := dial(t, socket)
		say(t, c)
		_, err := c.Read(make([]byte, 1))
		return err == nil
	})
	stop() // while workers are running: they are ended
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read from a worker after stop = %v, want EOF", err)
	}
}

// Connections that send nothing do not keep out others, and are closed.
func TestSilentConnections(t *testing.T) {
	socket, stop := start1(t, 2)
	var mute []net.Conn
	for range maxSilent + 8 {
		mute = append(mute, dial(t, socket))
	}
	c := dial(t, socket)
	say(t, c)
	if got := read(t, c, len(greeting)); got != greeting {
		t.Fatalf("beside %d silent connections the worker wrote %q, want %q", len(mute), got, greeting)
	}
	for i, c := range mute[:8] { // these were closed to make room
		if n, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("silent connection %d: read %d bytes, %v; want it closed", i, n, err)
		}
	}
	last := mute[len(mute)-1] // closed by its timeout
	if n, err := last.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("last silent connection: read %d bytes, %v; want it closed", n, err)
	}
	dial(t, socket) // one that is silent when the server stops
	stop()
}

func TestNoWorkerProgram(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir(), "standalone_test.go"} {
		if _, err := New(Config{Worker: path}); err == nil {
			t.Errorf("New accepted %s as the worker program", path)
		}
	}
}
