package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

// pty returns a pseudo-terminal whose other end answers no queries, like a serial line.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("host: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("host: %v", err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("host: %v", err)
	}
	return master, slave
}

// TestOnALineWithoutAnswers: the programs do not query the terminal (and so do not wait for
// answers), and the screen is drawn at once, without a basaltd.
func TestOnALineWithoutAnswers(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		name string
		args []string
		sees string
	}{
		{"basalt-installer", []string{"--version"}, "basalt-installer version"},
		{"basalt-console", []string{"--once", "--socket", none}, "does not answer"},
		{"basalt-console", []string{"--socket", none}, "Alt-F2 sign in"},
	} {
		got := onTerminal(t, built.Program(t, "appliance/cmd/"+c.name), c.args, c.sees)
		if !strings.Contains(got, c.sees) {
			t.Errorf("%s %v printed %q, want it to contain %q", c.name, c.args, got, c.sees)
		}
		for _, question := range []string{"\x1b]11;?", "\x1b]10;?", "\x1b[6n", "\x1b[c"} {
			if strings.Contains(got, question) {
				t.Errorf("%s %v sends the query %q to the terminal, want none", c.name, c.args, question)
			}
		}
	}
}

// TestEndsOnSIGTERM: the program ends on SIGTERM, while it draws and with a terminal that
// accepts no output.
func TestEndsOnSIGTERM(t *testing.T) {
	program := built.Program(t, "appliance/cmd/basalt-console")
	for range 8 { // an earlier bug prevented the end in every second run
		endOnSIGTERM(t, program, false)
	}
	endOnSIGTERM(t, program, true)
}

func endOnSIGTERM(t *testing.T, program string, held bool) {
	t.Helper()
	master, slave := pty(t)
	defer master.Close()
	defer slave.Close()
	cmd := exec.Command(program, "--socket", filepath.Join(t.TempDir(), "none"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(os.Environ(), "TERM=vt220")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	drawn := make(chan struct{})
	go func() {
		var out bytes.Buffer
		buf := make([]byte, 4096)
		for seen := false; ; {
			n, err := master.Read(buf)
			if out.Write(buf[:n]); !seen && (err != nil || strings.Contains(out.String(), "Alt-F2 sign in")) {
				seen = true
				close(drawn)
			}
			if err != nil {
				return
			}
		}
	}()
	<-drawn
	if held {
		if err := unix.IoctlSetInt(int(slave.Fd()), unix.TCXONC, unix.TCOOFF); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Errorf("send SIGTERM: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("terminal held = %v: the program ended with %v, want exit status 0", held, err)
	}
}

// onTerminal runs a program on a terminal until it has printed sees or ended, and returns its
// output.
func onTerminal(t *testing.T, program string, args []string, sees string) string {
	t.Helper()
	master, slave := pty(t)
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(os.Environ(), "TERM=vt220")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	var out bytes.Buffer
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		out.Write(buf[:n])
		if strings.Contains(out.String(), sees) {
			_ = cmd.Process.Signal(unix.SIGTERM) // it may have ended
		}
		if err != nil { // EIO: the other end is closed
			if !errors.Is(err, io.EOF) && !errors.Is(err, unix.EIO) {
				t.Errorf("read from the terminal: %v", err)
			}
			break
		}
	}
	stuck.Stop()
	_ = cmd.Wait() // ended by a signal or by itself
	return out.String()
}
