package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// signalExit is added to a signal's number for the exit code, as shells do.
const signalExit = 128

func shellCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "shell NAME|ID [-- COMMAND…]", Short: "Open a shell in an instance, or run a command in its user's shell", Args: cobra.MinimumNArgs(1),
		Long: "Signs in through the cluster's SSH gateway by the API: this computer needs no ssh and no SSH key. Without a command, it is the\n" +
			"user's shell, with a terminal if this is one; ~. at the beginning of a line disconnects. Exits with the command's exit\n" +
			"code, or 128 and a signal's number.",
	}
	user := cmd.Flags().String("user", "", "user in the instance; default: the image's")
	tty := cmd.Flags().BoolP("tty", "t", false, "give a command a terminal, too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a := k.app
		in, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		run := api.ShellStart{Command: strings.Join(args[1:], " ")}
		fd, isTerminal := terminal(a.In)
		if isTerminal = isTerminal && (run.Command == "" || *tty); isTerminal {
			run.Terminal, run.ShellSize = cmp.Or(a.Getenv("TERM"), "xterm"), sizeOf(fd)
		} else if *tty {
			return usagef("--tty: standard input is not a terminal")
		}
		ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer cancel()
		s, err := a.api.Shell(ctx, in.Meta.ID, *user, run)
		if err != nil {
			return err
		}
		defer s.Close()
		if !isTerminal {
			return a.runShell(ctx, s, nil)
		}
		state, err := term.MakeRaw(fd)
		if err != nil {
			return fmt.Errorf("set terminal to raw mode: %w", err)
		}
		defer func() { _ = term.Restore(fd, state) }()
		go followSize(ctx, s, fd)
		return a.runShell(ctx, s, &escapeFilter{fresh: true})
	}
	return cmd
}

// sizeOf returns the size of a terminal, or zero if it is unknown.
func sizeOf(fd int) api.ShellSize {
	columns, rows, err := term.GetSize(fd)
	if err != nil || columns < 1 || rows < 1 || columns > 1<<15 || rows > 1<<15 {
		return api.ShellSize{}
	}
	return api.ShellSize{Columns: uint16(columns), Rows: uint16(rows)}
}

// followSize reports changes of the terminal's size to the shell.
func followSize(ctx context.Context, s *client.Shell, fd int) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if size := sizeOf(fd); size != (api.ShellSize{}) && s.Resize(size) != nil {
				return
			}
		}
	}
}

// errLeft reports that the user has disconnected from a shell.
var errLeft = errors.New("left")

// runShell copies in both directions until the command ends, the user disconnects, or ctx ends.
func (a *App) runShell(ctx context.Context, s *client.Shell, keys *escapeFilter) error {
	type end struct {
		exit api.ShellExit
		err  error
	}
	done := make(chan end, 2)
	go func() {
		exit, err := s.Run(a.Out, a.Err)
		done <- end{exit, err}
	}()
	go func() {
		if err := sendInput(s, a.In, keys); err != nil {
			done <- end{err: err}
		}
	}()
	select {
	case <-ctx.Done():
		return exitCode(signalExit + int(unix.SIGINT))
	case e := <-done:
		return a.shellEnded(e.exit, e.err)
	}
}

func (a *App) shellEnded(exit api.ShellExit, err error) error {
	var known *api.Error
	switch {
	case errors.Is(err, errLeft):
		fmt.Fprint(a.Err, "\r\nDisconnected.\r\n")
		return nil
	case errors.As(err, &known):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", api.Errorf(api.CodeUnavailable, "the connection to the server was lost").WithHint("open another shell"), err)
	case exit.Signal != "":
		return exitCode(signalExit + int(unix.SignalNum("SIG"+exit.Signal)))
	case exit.Code != 0:
		return exitCode(exit.Code)
	}
	return nil
}

// sendInput sends standard input until it ends or the user disconnects.
func sendInput(s *client.Shell, in io.Reader, keys *escapeFilter) error {
	if in == nil {
		return s.CloseWrite()
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := in.Read(buf)
		send, left := buf[:n], false
		if keys != nil {
			send, left = keys.filter(send)
		}
		if len(send) > 0 {
			if _, err := s.Write(send); err != nil {
				return nil //nolint:nilerr // Run reports why it has ended
			}
		}
		switch {
		case left:
			return errLeft
		case errors.Is(err, io.EOF):
			_ = s.CloseWrite() // fails if it has ended, which Run reports
			return nil
		case err != nil:
			return fmt.Errorf("read standard input: %w", err)
		}
	}
}

// escapeFilter detects ~. at the beginning of a line, as ssh does; ~~ sends one ~.
type escapeFilter struct {
	fresh bool // nothing was typed in this line
	tilde bool // a ~ at its beginning is held back
}

// filter returns the keys to send to the instance, and whether the user disconnects.
func (f *escapeFilter) filter(keys []byte) (send []byte, left bool) {
	if !f.tilde && !bytes.ContainsRune(keys, '~') {
		if n := len(keys); n > 0 {
			f.fresh = isLineEnd(keys[n-1])
		}
		return keys, false
	}
	for _, k := range keys {
		if f.tilde {
			f.tilde = false
			if k == '.' {
				return send, true
			}
			send = append(send, '~')
			if k == '~' {
				f.fresh = false
				continue
			}
		} else if k == '~' && f.fresh {
			f.tilde, f.fresh = true, false
			continue
		}
		send = append(send, k)
		f.fresh = isLineEnd(k)
	}
	return send, false
}

func isLineEnd(k byte) bool { return k == '\r' || k == '\n' }
