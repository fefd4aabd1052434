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
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
)

// TestMain also runs the test binary as the parent of a worker, or as a worker that was taken
// over, which makes the attempts that are its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "parent" {
		os.Exit(parent(os.Args[2]))
	}
	if len(os.Args) < 2 || os.Args[1] != "taken-over" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread()
	if err := confine(options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("must not be visible: stdout is /dev/null")
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
			return fmt.Errorf("code returned %d, want 7", got)
		}
		return nil
	},
	"cache": func(key string) error { // descriptor 3
		c, err := codecache.Open(3)
		if err != nil {
			return err
		}
		c.Put(codecache.Key{key[0]}, []byte("code"))
		if code, ok := c.Get(codecache.Key{key[0]}); !ok || string(code) != "code" {
			return fmt.Errorf("cache returned %q, %v", code, ok)
		}
		return nil
	},
	"grow": func(string) error { return unix.Ftruncate(3, 2*codecache.Bytes) },
	"kill": func(pid string) error {
		var n int
		_, _ = fmt.Sscan(pid, &n)
		return unix.Kill(n, 0)
	},
}

// takenOver starts a worker that was taken over and returns the lines that it writes to stderr:
// the result of each attempt. Its output on stdout must not be visible.
func takenOver(t *testing.T, tries ...string) (pid int, lines []string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"taken-over"}, tries...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cache, err := codecache.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	cmd.ExtraFiles = []*os.File{cache}
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
			t.Errorf("stdout of the worker = %q, want none", stdout.String())
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

// TestTakenOverWorkerGainsNothing: a worker that a guest has taken over has no access to
// secrets, other workers or the network.
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
		{"code of its own", true, 1}, // needed for the soft GPU's compiled kernels
		{"grow the cache", false, 1},
		{"cache code", true, 1},
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
		t.Fatalf("answers = %q, want %d", lines, len(tries))
	}
	for i, try := range tries {
		denied := strings.Contains(lines[i], "permission denied") || strings.Contains(lines[i], "not permitted") || strings.Contains(lines[i], "not implemented")
		if try.since <= version && (denied == try.allowed || try.allowed && lines[i] != "<nil>") {
			t.Errorf("attempt to %s: %s, want allowed = %t", try.what, lines[i], try.allowed)
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "token" {
		t.Errorf("secret after the attempts = %q, error %v, want it unchanged", b, err)
	}
	if _, err := os.Stat(secret + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Error("worker created a file, want none")
	}
}

// TestCompromisedWorkerSystemCalls: system calls that a worker does not need fail.
func TestCompromisedWorkerSystemCalls(t *testing.T) {
	tries := []struct{ what, want string }{
		{"execute /bin/true", "not permitted"}, // a process cannot be created
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
		t.Fatalf("%d answers to %d attempts, want one each: %q", len(lines), len(tries), lines)
	}
	for i, try := range tries {
		if !strings.Contains(lines[i], try.want) {
			t.Errorf("attempt to %s: %s, want %s", try.what, lines[i], try.want)
		}
	}
}
