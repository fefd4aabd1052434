package servertest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

// FakeShells fakes guests with a few commands: cat, exit N, kill, flood, whoami, fail, and
// a login shell that echoes lines and sizes until a line is exit.
type FakeShells struct{}

// OpenShell implements server.Shells.
func (FakeShells) OpenShell(ctx context.Context, a server.SSHAccess, user string) (server.Shell, error) {
	if user == "nobody" {
		return nil, api.Errorf(api.CodeForbidden, "instance %s does not let the gateway in as nobody", a.Instance.Meta.Name)
	}
	s := &shell{user: cmp.Or(user, a.GuestUser, "debian"), ended: make(chan struct{})}
	s.keys, s.stdin = io.Pipe()
	s.stdout, s.out = io.Pipe()
	s.stderr, s.err = io.Pipe()
	context.AfterFunc(ctx, func() { _ = s.Close() })
	return s, nil
}

type shell struct {
	user        string
	keys        *io.PipeReader
	stdin       *io.PipeWriter
	out, err    *io.PipeWriter
	stdout      *io.PipeReader
	stderr      *io.PipeReader
	once        sync.Once
	ended       chan struct{} // closed when exit is set
	exit        api.ShellExit
	interactive bool
}

// Start implements server.Shell.
func (s *shell) Start(run api.ShellStart) error {
	if run.Terminal == "bad" {
		return api.Errorf(api.CodeInvalid, "%q is not a valid type of a terminal", run.Terminal)
	}
	s.interactive = run.Command == ""
	go s.run(run)
	return nil
}

func (s *shell) run(run api.ShellStart) {
	name, rest, _ := strings.Cut(run.Command, " ")
	var exit api.ShellExit
	switch name {
	case "":
		exit.Code = s.login(run)
	case "cat":
		_, _ = io.Copy(s.out, s.keys)
	case "whoami":
		fmt.Fprintln(s.out, s.user)
	case "fail":
		fmt.Fprintln(s.err, "no")
		exit.Code = 1
	case "kill":
		exit.Signal = "TERM"
	case "flood":
		for b := make([]byte, 32<<10); ; {
			if _, err := s.out.Write(b); err != nil {
				break
			}
		}
	case "exit":
		exit.Code, _ = strconv.ParseInt(rest, 10, 64)
	default:
		fmt.Fprintf(s.err, "%s: command not found\n", name)
		exit.Code = 127
	}
	s.end(exit)
}

func (s *shell) login(run api.ShellStart) int64 {
	fmt.Fprintf(s.out, "%s on %q, %dx%d\r\n", s.user, run.Terminal, run.Columns, run.Rows)
	lines := bufio.NewReader(s.keys)
	for {
		line, err := lines.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		if code, ok := strings.CutPrefix(line, "exit"); ok || err != nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(code), 10, 64) // empty: 0
			return n
		}
		fmt.Fprintf(s.out, "> %s\r\n", line)
	}
}

func (s *shell) end(exit api.ShellExit) {
	s.once.Do(func() {
		s.exit = exit
		close(s.ended)
		_, _, _ = s.out.Close(), s.err.Close(), s.keys.Close()
	})
}

// Write implements server.Shell.
func (s *shell) Write(b []byte) (int, error) { return s.stdin.Write(b) }

// CloseWrite implements server.Shell.
func (s *shell) CloseWrite() error { return s.stdin.Close() }

// Resize implements server.Shell.
func (s *shell) Resize(to api.ShellSize) error {
	if s.interactive {
		fmt.Fprintf(s.out, "now %dx%d\r\n", to.Columns, to.Rows)
	}
	return nil
}

// Stdout implements server.Shell.
func (s *shell) Stdout() io.Reader { return s.stdout }

// Stderr implements server.Shell.
func (s *shell) Stderr() io.Reader { return s.stderr }

// Wait implements server.Shell.
func (s *shell) Wait() (api.ShellExit, error) {
	<-s.ended
	return s.exit, nil
}

// Close implements server.Shell.
func (s *shell) Close() error {
	s.end(api.ShellExit{Signal: "HUP"})
	_, _ = s.stdout.Close(), s.stderr.Close()
	return nil
}
