package gpudriver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// quiet is after how long without output it is shown that a program still runs: the
	// compiler prints little for many minutes.
	quiet = 30 * time.Second
	// maxTail limits the output that an error repeats, in bytes.
	maxTail = 1000
)

// Exec runs a program; it is the real Command. Its output goes to out, each line indented
// if that is the terminal or the journal. The error contains the last lines of what the
// program wrote to its standard error.
func Exec(ctx context.Context, argv []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	// A killed dpkg leaves packages half installed: it may finish.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	var last tail
	cmd.Stdout, cmd.Stderr = out, &last
	if _, collected := out.(*bytes.Buffer); !collected {
		shown := newProgress(out)
		defer shown.close()
		cmd.Stdout, cmd.Stderr = shown, io.MultiWriter(shown, &last)
	}
	if err := cmd.Run(); err != nil {
		if text := last.String(); text != "" {
			return fmt.Errorf("%w: %s", err, text)
		}
		return err
	}
	return nil
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(b), nil
}

// String returns the last lines, in one: only apt's errors if there are some.
func (t *tail) String() string {
	var lines, errs []string
	for line := range strings.Lines(string(t.text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
		if strings.HasPrefix(line, "E: ") {
			errs = append(errs, line)
		}
	}
	if len(errs) > 0 {
		lines = errs
	}
	return strings.Join(lines[max(0, len(lines)-4):], "; ")
}

// progress shows the output of a program, and that it runs while it prints nothing.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	line  []byte // the beginning of a line that is not complete
	began time.Time
	wrote time.Time // the last output
	stop  chan struct{}
	done  chan struct{}
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, began: time.Now(), wrote: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go p.watch()
	return p
}

func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range b {
		if c == '\n' || c == '\r' {
			p.flush()
			continue
		}
		p.line = append(p.line, c)
	}
	return len(b), nil
}

// flush writes the line. mu must be held.
func (p *progress) flush() {
	if len(p.line) > 0 {
		fmt.Fprintf(p.out, "      %s\n", p.line)
		p.line, p.wrote = p.line[:0], time.Now()
	}
}

func (p *progress) watch() {
	defer close(p.done)
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			p.mu.Lock()
			if now.Sub(p.wrote) >= quiet {
				fmt.Fprintf(p.out, "      still running after %s\n", now.Sub(p.began).Round(time.Second))
			}
			p.mu.Unlock()
		}
	}
}

func (p *progress) close() {
	close(p.stop)
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush()
}
