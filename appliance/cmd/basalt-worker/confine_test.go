package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
)

// TestMain: the test binary is also a worker that was taken over, and tries
// what it is told to.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "taken-over" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread()
	if err := confine(options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("nobody reads this: stdout leads nowhere")
	for _, what := range os.Args[2:] {
		verb, object, _ := strings.Cut(what, " ")
		fmt.Fprintln(os.Stderr, attempts[verb](object))
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

var attempts = map[string]func(string) error{
	"read":    func(path string) error { _, err := os.ReadFile(path); return err },
	"memory":  func(pid string) error { _, err := os.Open("/proc/" + pid + "/mem"); return err },
	"write":   func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	"connect": func(address string) error { _, err := net.Dial("tcp", address); return err },
	"execute": func(path string) error { return exec.Command(path).Run() },
	"call": func(number string) error {
		var n uintptr
		_, _ = fmt.Sscan(number, &n)
		if _, _, errno := unix.Syscall(n, 0, 0, 0); errno != 0 {
			return errno
		}
		return nil
	},
	"socket": func(family string) error {
		var n int
		_, _ = fmt.Sscan(family, &n)
		_, err := unix.Socket(n, unix.SOCK_STREAM, 0)
		return err
	},
	"code": func(string) error {
		if !amd64.Available() {
			return nil
		}
		code, err := amd64.Load([]byte{0xb8, 7, 0, 0, 0, 0xc3}) // mov eax, 7; ret
		if err != nil {
			return err
		}
		defer code.Close()
		if got := code.Function(0).Call(nil); got != 7 {
			return fmt.Errorf("the code returned %d", got)
		}
		return nil
	},
	"kill": func(pid string) error {
		var n int
		_, _ = fmt.Sscan(pid, &n)
		return unix.Kill(n, 0)
	},
}

// takenOver starts one; what it writes to stderr is its answers, a line each, and
// what it writes to stdout is not to be seen.
func takenOver(t *testing.T, tries ...string) (pid int, lines []string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"taken-over"}, tries...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
		if stdout.Len() > 0 {
			t.Errorf("its stdout has %q", stdout.String())
		}
	})
	if len(tries) > 0 {
		_ = in.Close()
		b, err := io.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		lines = strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	return cmd.Process.Pid, lines
}

func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// A worker that a guest has taken over finds no secret, no other worker and no way out.
func TestTakenOverWorkerGainsNothing(t *testing.T) {
	version := landlockVersion()
	if version == 0 {
		t.Skip("this kernel has no Landlock")
	}
	secret := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(secret, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, _ := takenOver(t)
	tries := []struct {
		what    string
		allowed bool
		since   int // Landlock's version
	}{
		{"read /etc/passwd", true, 1},
		{"read /proc/self/maps", true, 1},
		{"write /dev/null", true, 1},
		{"code of its own", true, 1}, // of the soft GPU's compiled kernels
		{"read " + secret, false, 1},
		{"write " + secret, false, 1},
		{"write " + secret + ".new", false, 1},
		{fmt.Sprint("memory ", other), false, 1},
		{"connect " + l.Addr().String(), false, 4},
		{fmt.Sprint("kill ", other), false, 6},
	}
	var words []string
	for _, try := range tries {
		words = append(words, try.what)
	}
	_, lines := takenOver(t, words...)
	if len(lines) != len(tries) {
		t.Fatalf("%q", lines)
	}
	for i, try := range tries {
		denied := strings.Contains(lines[i], "permission denied") || strings.Contains(lines[i], "not permitted") || strings.Contains(lines[i], "not implemented")
		if try.since <= version && (denied == try.allowed || try.allowed && lines[i] != "<nil>") {
			t.Errorf("%s: %s", try.what, lines[i])
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "token" {
		t.Errorf("the secret is %q now, %v", b, err)
	}
	if _, err := os.Stat(secret + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file was made")
	}
}

// The system calls that it does not need do not exist for it.
func TestTakenOverWorkerHasFewSystemCalls(t *testing.T) {
	tries := []struct{ what, want string }{
		{"execute /bin/true", "not permitted"}, // for want of a process
		{fmt.Sprint("call ", unix.SYS_EXECVE), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_CLONE), "not permitted"},
		{fmt.Sprint("call ", unix.SYS_CLONE3), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_TGKILL), "not permitted"}, // to another process
		{fmt.Sprint("call ", unix.SYS_PTRACE), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_KILL), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_PROCESS_VM_READV), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_MOUNT), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_UNSHARE), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_SETNS), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_BPF), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_IO_URING_SETUP), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_PERF_EVENT_OPEN), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_USERFAULTFD), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_ADD_KEY), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_SECCOMP), "not implemented"},
		{fmt.Sprint("call ", unix.SYS_GETPID), "<nil>"},
		{fmt.Sprint("socket ", unix.AF_INET), "not permitted"},
		{fmt.Sprint("socket ", unix.AF_NETLINK), "not permitted"},
		{fmt.Sprint("socket ", unix.AF_VSOCK), "not permitted"},
		{fmt.Sprint("socket ", unix.AF_UNIX), "<nil>"},
	}
	var args []string
	for _, try := range tries {
		args = append(args, try.what)
	}
	_, lines := takenOver(t, args...)
	if len(lines) != len(tries) {
		t.Fatalf("%d answers to %d attempts: %q", len(lines), len(tries), lines)
	}
	for i, try := range tries {
		if !strings.Contains(lines[i], try.want) {
			t.Errorf("%s: %s, want %s", try.what, lines[i], try.want)
		}
	}
}
