package sshgateway

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
)

const (
	maxTerminal = 64 // bytes of a terminal type
	maxSignal   = 32 // bytes of a signal's name
)

// ShellOptions state who opens a shell, and as which user.
type ShellOptions struct {
	Owner string // whose shells are counted: a user or an API key
	User  string // user in the guest; empty for the image's default user
}

// Shell is one session in a guest. It may be used concurrently; methods that read
// or write return an error when the shell is closed.
type Shell struct {
	n       *connection
	session *ssh.Session
	end     context.CancelCauseFunc
	leave   func()

	stdin          io.WriteCloser
	stdout, stderr io.Reader
	carried        atomic.Int64 // bytes in and out
}

// OpenShell signs in to the guest of an instance. The shell ends with ctx, when the
// guest does not answer any more, and by the gateway's limits.
func (g *Gateway) OpenShell(ctx context.Context, a Access, o ShellOptions) (*Shell, error) {
	if o.User != "" && !isGuestUser(o.User) {
		return nil, api.Errorf(api.CodeInvalid, "%.40q is not a valid name of a user in the guest", o.User).At("user")
	}
	if o.User == "" && a.GuestUser == "" {
		return nil, api.Errorf(api.CodeInvalid, "the image of instance %s does not say as whom to sign in", a.Name).WithHint("name the user").At("user")
	}
	leave, ok := g.shells.Enter(o.Owner)
	if !ok {
		return nil, api.Errorf(api.CodeInUse, "%d shells of yours are open on this node, which is the limit", g.limits.shellsOfOwner).WithHint("close one")
	}
	ctx, end := context.WithCancelCause(ctx)
	s := &Shell{n: &connection{g: g, ctx: ctx, access: a, target: Target{User: o.User}}, end: end, leave: leave}
	s.n.touch()
	if err := s.open(); err != nil {
		_ = s.Close()
		return nil, err
	}
	go s.watch()
	return s, nil
}

func (s *Shell) open() error {
	guest, err := s.n.signIn()
	if err != nil {
		return err
	}
	context.AfterFunc(s.n.ctx, func() { _ = guest.Close() })
	return s.answered("a session", func() (err error) {
		if s.session, err = guest.NewSession(); err != nil {
			return err
		}
		if s.stdin, err = s.session.StdinPipe(); err != nil {
			return err
		}
		if s.stdout, err = s.session.StdoutPipe(); err != nil {
			return err
		}
		s.stderr, err = s.session.StderrPipe()
		return err
	})
}

// answered runs a request to the guest, and ends the shell if the guest does not
// answer in time.
func (s *Shell) answered(what string, ask func() error) error {
	late := api.Errorf(api.CodeUnavailable, "instance %s does not answer a request for %s", s.n.access.Name, what)
	timer := time.AfterFunc(s.n.g.limits.guestTime, func() { s.end(late) })
	defer timer.Stop()
	err := ask()
	switch {
	case err == nil:
		return nil
	case s.n.ctx.Err() != nil:
		return context.Cause(s.n.ctx)
	}
	s.n.g.o.Log.Debug("SSH gateway: a guest refused a shell", "instance", s.n.access.Instance, "error", err)
	return api.Errorf(api.CodeUnavailable, "instance %s refused %s", s.n.access.Name, what)
}

// Start runs a command, or the user's shell if it is empty. It must be called once,
// before Wait.
func (s *Shell) Start(run api.ShellStart) error {
	if run.Terminal != "" {
		if len(run.Terminal) > maxTerminal || !isTerminal(run.Terminal) {
			return api.Errorf(api.CodeInvalid, "%.40q is not a valid type of a terminal", run.Terminal).WithHint("e.g. xterm-256color")
		}
		size := filled(run.ShellSize)
		if err := s.answered("a terminal", func() error {
			return s.session.RequestPty(run.Terminal, int(size.Rows), int(size.Columns), ssh.TerminalModes{})
		}); err != nil {
			return err
		}
	}
	if run.Command == "" {
		return s.answered("a shell", s.session.Shell)
	}
	return s.answered("a command", func() error { return s.session.Start(run.Command) })
}

func isTerminal(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+"
	return strings.Trim(s, letters) == ""
}

// filled returns the size with the usual values in place of zeros.
func filled(s api.ShellSize) api.ShellSize {
	if s.Columns == 0 {
		s.Columns = 80
	}
	if s.Rows == 0 {
		s.Rows = 24
	}
	return s
}

// Resize sends the terminal's size to the guest.
func (s *Shell) Resize(to api.ShellSize) error {
	to = filled(to)
	return s.session.WindowChange(int(to.Rows), int(to.Columns))
}

// Write implements io.Writer: it writes to standard input.
func (s *Shell) Write(b []byte) (int, error) {
	if err := s.count(len(b)); err != nil {
		return 0, err
	}
	return s.stdin.Write(b)
}

// CloseWrite closes standard input.
func (s *Shell) CloseWrite() error { return s.stdin.Close() }

// Stdout returns standard output. The guest blocks unless both it and Stderr are
// read.
func (s *Shell) Stdout() io.Reader { return counted{s, s.stdout} }

// Stderr returns standard error, which is empty with a terminal.
func (s *Shell) Stderr() io.Reader { return counted{s, s.stderr} }

type counted struct {
	s    *Shell
	from io.Reader
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if limit := c.s.count(n); limit != nil {
		err = limit
	}
	return n, err
}

// count counts bytes, and ends the shell when the limit is exceeded.
func (s *Shell) count(n int) error {
	s.n.touch()
	if s.carried.Add(int64(n)) <= s.n.g.limits.shellBytes {
		return nil
	}
	err := api.Errorf(api.CodeQuota, "the shell has carried %d bytes, which is the limit", s.n.g.limits.shellBytes).WithHint("copy files by scp or sftp")
	s.end(err)
	return err
}

// Wait returns how the program has ended, after its output has been read. The error
// is an *api.Error if the gateway ended the shell.
func (s *Shell) Wait() (api.ShellExit, error) {
	err := s.session.Wait()
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return api.ShellExit{}, nil
	case errors.As(err, &exit) && exit.Signal() != "":
		return api.ShellExit{Signal: signal(exit.Signal())}, nil
	case errors.As(err, &exit):
		return api.ShellExit{Code: int64(uint32(exit.ExitStatus()))}, nil
	case s.n.ctx.Err() != nil:
		return api.ShellExit{}, context.Cause(s.n.ctx)
	}
	return api.ShellExit{}, api.Errorf(api.CodeUnavailable, "instance %s ended the shell without a status", s.n.access.Name)
}

// signal returns the name of a signal, or "unknown" if the guest sent an invalid
// one.
func signal(name string) string {
	if len(name) > maxSignal || !isTerminal(name) {
		return "unknown"
	}
	return name
}

// watch ends the shell when it is idle, or the guest does not answer.
func (s *Shell) watch() {
	l := s.n.g.limits
	tick := time.NewTicker(min(l.askEvery, l.shellIdle))
	defer tick.Stop()
	for {
		select {
		case <-s.n.ctx.Done():
			return
		case <-tick.C:
		}
		s.n.mu.Lock()
		guest := s.n.guest
		s.n.mu.Unlock()
		switch {
		case s.n.idle() > l.shellIdle:
			s.end(api.Errorf(api.CodeUnavailable, "the shell was idle for %v", l.shellIdle))
		case guest == nil:
			return // it has ended
		case !s.n.lives(guest):
			s.end(api.Errorf(api.CodeUnavailable, "instance %s does not answer any more", s.n.access.Name))
		}
	}
}

// Close ends the shell and what runs in it, as closing a terminal does.
func (s *Shell) Close() error {
	s.end(errShellClosed)
	s.n.closeGuest()
	s.leave()
	return nil
}

var errShellClosed = errors.New("the shell was closed")
