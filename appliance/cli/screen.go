package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func screenCommand(k *kind[api.Instance]) *cobra.Command {
	var port uint16
	cmd := &cobra.Command{
		Use: "vnc NAME|ID", Short: "Open the screen in a VNC viewer on this computer", Args: cobra.ExactArgs(1),
		Long: "Listens on 127.0.0.1 until Ctrl-C, and connects VNC viewers to the instance's screen. Anyone who can connect to\n" +
			"127.0.0.1 on this computer can see the screen and type there.",
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := k.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer cancel()
			first, err := k.app.api.Screen(ctx, i.Meta.ID) // reports early why the screen is not available
			if err != nil {
				return err
			}
			_ = first.Close()
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
			if err != nil {
				return err
			}
			fmt.Fprintf(k.app.Out, "The screen of %s is at vnc://%s\n", i.Meta.Name, l.Addr())
			fmt.Fprintln(k.app.Err, "Press Ctrl-C to stop.")
			stop := context.AfterFunc(ctx, func() { _ = l.Close() })
			defer stop()
			return serveViewers(l, func(viewer net.Conn) {
				if err := k.app.view(ctx, viewer, i.Meta.ID); err != nil {
					fmt.Fprintln(k.app.Err, err)
				}
			})
		},
	}
	cmd.Flags().Uint16Var(&port, "port", 0, "port on 127.0.0.1; 0: a free one")
	return cmd
}

// serveViewers serves viewers until the listener is closed, and then waits until all have
// ended.
func serveViewers(l net.Listener, serve func(net.Conn)) error {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		viewer, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		all.Go(func() { serve(viewer) })
	}
}

// view connects one viewer to the screen until either closes or ctx ends.
func (a *App) view(ctx context.Context, viewer net.Conn, id string) error {
	defer viewer.Close()
	screen, err := a.api.Screen(ctx, id)
	if err != nil {
		return err
	}
	defer screen.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{viewer, screen}, {screen, viewer}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return nil
}
