package stdio

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
)

// newPipe returns a stream of a pipe, and the pipe's writing end.
func newPipe(t *testing.T) (*stream, int) {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		t.Fatal(err)
	}
	s, err := newStream(os.NewFile(uintptr(ends[0]), "pipe"), abi.OutputStdout, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(s.empty)
	t.Cleanup(func() {
		_ = unix.Close(ends[1])
		ended.Wait()
		_ = s.pipe.Close()
	})
	return s, ends[1]
}

func write(t *testing.T, fd int, text []byte) {
	t.Helper()
	for len(text) > 0 {
		n, err := unix.Write(fd, text)
		if err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
}

// Everything that was written before a take is in it, once and in order, whoever reads
// the pipe.
func TestTakeHasAllThatWasWritten(t *testing.T) {
	s, fd := newPipe(t)
	for i := range 2000 {
		want := fmt.Sprintf("partial line %d, %s", i, strings.Repeat("x", i*17%9000))
		write(t, fd, []byte(want))
		texts, dropped := s.take()
		if got := string(bytes.Join(texts, nil)); got != want || dropped != 0 {
			t.Fatalf("take %d = %d bytes, %d dropped, want %d and none", i, len(got), dropped, len(want))
		}
	}
	if texts, dropped := s.take(); texts != nil || dropped != 0 {
		t.Errorf("take when nothing was written = %q, %d dropped, want none", texts, dropped)
	}
}

// A writer does not wait for a take. The newest bytes are kept, and the others counted.
func TestFlood(t *testing.T) {
	s, fd := newPipe(t)
	line := []byte(strings.Repeat("flood ", 1000) + "\n")
	const lines = 4 * Limit / 6001
	for range lines {
		write(t, fd, line)
	}
	write(t, fd, []byte("the end"))
	texts, dropped := s.take()
	got := bytes.Join(texts, nil)
	if all := uint64(lines*len(line) + len("the end")); uint64(len(got))+dropped != all || len(got) > Limit || len(got) < Limit-readBytes {
		t.Errorf("take = %d bytes, %d dropped, want %d in all and about %d taken", len(got), dropped, all, Limit)
	}
	if !bytes.HasSuffix(got, append(line, "the end"...)) {
		t.Errorf("take ends with %q, want the last line", got[len(got)-50:])
	}
	if s.held != 0 {
		t.Errorf("%d bytes are held after take, want none", s.held)
	}
}

// Many small writes do not use more memory than their bytes.
func TestSmallWritesAreJoined(t *testing.T) {
	s := &stream{}
	for range 3 * readBytes {
		s.add([]byte("x"))
	}
	if len(s.texts) > 4 || s.held != 3*readBytes {
		t.Errorf("%d texts of %d bytes, want at most 4 of %d", len(s.texts), s.held, 3*readBytes)
	}
}

// A take ends although others write all the time.
func TestTakeEndsBesideAWriter(t *testing.T) {
	s, fd := newPipe(t)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for block := make([]byte, 16<<10); ; {
			select {
			case <-stop:
				return
			default:
				_, _ = unix.Write(fd, block)
			}
		}
	})
	defer writer.Wait()
	defer close(stop)
	taken := make(chan int)
	go func() {
		for range 100 {
			_, _ = s.take()
		}
		taken <- 100
	}()
	patience.Receive(t, time.Minute, "100 takes end", taken)
}

// TestStart runs a process whose descriptors 1 and 2 are collected, while os.Stdout and
// os.Stderr, and the report of a crash, are those that the process was started with.
func TestStart(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestStarted$")
	cmd.Env = append(os.Environ(), "STDIO_STARTED=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err == nil {
		t.Error("the process ended without an error, want that it panics")
	}
	if want := "1: a line\n1: a part 2: failed\n, 0 dropped\nstdout\n"; out.String() != want {
		t.Errorf("stdout = %q, want %q", out.String(), want)
	}
	if got := errs.String(); !strings.HasPrefix(got, "stderr\n") || !strings.Contains(got, "panic: the report of a crash") || strings.Contains(got, "failed") {
		t.Errorf("stderr = %q, want a line and the panic", got)
	}
}

// TestStarted is the process of TestStart.
func TestStarted(t *testing.T) {
	if os.Getenv("STDIO_STARTED") == "" {
		return
	}
	if _, err := start(); err == nil || Left(10) != nil {
		t.Fatalf("Start before Separate: %v, left %q, want an error and nothing", err, Left(10))
	}
	if err := Separate(); err != nil {
		t.Fatal(err)
	}
	c, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Start(); again != c || err != nil {
		t.Fatalf("second Start = %p, %v, want %p", again, err, c)
	}
	write(t, 1, []byte("a line\na part "))
	write(t, 2, []byte("failed\n"))
	var all strings.Builder
	dropped := c.Take(func(to uint32, text []byte) {
		for line := range strings.Lines(string(text)) {
			fmt.Fprintf(&all, "%d: %s", to, line)
		}
	})
	if left := Left(10); len(left) > 0 {
		t.Fatalf("left = %q after everything was taken, want nothing", left)
	}
	write(t, 1, []byte("not an error"))
	write(t, 2, []byte("a message of the library"))
	if left := Left(7); string(left) != "library" {
		t.Fatalf("left = %q, want the last 7 bytes", left)
	}
	fmt.Fprintf(os.Stdout, "%s, %d dropped\nstdout\n", all.String(), dropped)
	fmt.Fprintln(os.Stderr, "stderr")
	// Descriptor 2 is full, which must not keep the runtime from ending the process.
	c.err.mu.Lock()
	for err := error(nil); err == nil; {
		_, err = unix.Write(2, make([]byte, 4096))
	}
	panic("the report of a crash")
}
