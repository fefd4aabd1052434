package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/basalt-gpu/basalt/api"
)

// leaveKey is Ctrl-], which disconnects.
const leaveKey = 0x1d

// terminal returns the file descriptor of a reader or writer, and whether it is a terminal.
func terminal(f any) (int, bool) {
	file, ok := f.(*os.File)
	if !ok {
		return 0, false
	}
	fd := int(file.Fd())
	return fd, term.IsTerminal(fd)
}

func consoleCommand(k *kind[api.Instance]) *cobra.Command {
	return &cobra.Command{
		Use: "console NAME|ID", Short: "Connect to the serial console; Ctrl-] disconnects", Args: cobra.ExactArgs(1),
		Long: "Connects this terminal to the instance's serial console, in raw mode, until Ctrl-] is pressed. A serial console\n" +
			"does not report its size: after a resize, run `resize` or `stty` in the instance.",
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := k.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer cancel()
			conn, err := k.app.api.Console(ctx, i.Meta.ID)
			if err != nil {
				return err
			}
			defer conn.Close()
			if fd, ok := terminal(k.app.In); ok {
				fmt.Fprintf(k.app.Err, "Connected to %s. Press Ctrl-] to disconnect.\n", i.Meta.Name)
				state, err := term.MakeRaw(fd)
				if err != nil {
					return fmt.Errorf("set terminal to raw mode: %w", err)
				}
				defer func() {
					_ = term.Restore(fd, state)
					fmt.Fprintln(k.app.Err, "\nDisconnected.")
				}()
			}
			if err = bridge(ctx, conn, k.app.In, k.app.Out); errors.Is(err, errFar) {
				fmt.Fprintf(k.app.Err, "\r\n%v\r\n", err)
				return nil
			}
			return err
		},
	}
}

// bridge copies in both directions until the remote side closes, the user presses Ctrl-] or ctx
// ends. The output continues after the end of the input, for `… console < script`.
func bridge(ctx context.Context, conn io.ReadWriter, in io.Reader, out io.Writer) error {
	done := make(chan error, 2)
	go func() {
		done <- fromFar(out, conn)
	}()
	go func() {
		left, err := copyUntilLeave(conn, in)
		if left || err != nil {
			done <- err
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-done:
		return err
	}
}

// errFar reports that the remote side of a console closed it.
var errFar = errors.New("the console was closed: the instance stopped, or its node closed the connection")

// fromFar copies what the instance writes, and returns why that ended.
func fromFar(out io.Writer, conn io.Reader) error {
	switch _, err := io.Copy(out, conn); {
	case err == nil:
		return errFar
	case websocket.CloseStatus(err) != -1:
		return fmt.Errorf("the server closed the console: %w", err)
	default:
		return fmt.Errorf("%w: %w", api.Errorf(api.CodeUnavailable, "the connection to the server was lost").
			WithHint("the instance keeps running; connect again"), err)
	}
}

// copyUntilLeave copies the user's keys until Ctrl-]; left reports whether it was pressed.
func copyUntilLeave(w io.Writer, in io.Reader) (left bool, err error) {
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		keys := buf[:n]
		if i := bytes.IndexByte(keys, leaveKey); i >= 0 {
			keys, left = keys[:i], true
		}
		if len(keys) > 0 {
			if _, werr := w.Write(keys); werr != nil {
				return left, werr
			}
		}
		if left {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
