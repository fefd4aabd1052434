// Command basalt-console is the first screen of an installed node (tty1).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/basalt-gpu/basalt/installer/console"
	"github.com/basalt-gpu/basalt/installer/tui/screen"
	"github.com/basalt-gpu/basalt/installer/tui/terminal"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "basalt-console:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var socket string
	var once bool
	cmd := &cobra.Command{
		Use: "basalt-console", Short: "Show the state of this node full-screen", Version: version, Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			n := node{console.Node{Socket: socket, Version: version}}
			if once {
				fmt.Fprintln(cmd.OutOrStdout(), console.Text(n.Observe(cmd.Context())))
				return nil
			}
			if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
				return errors.New("standard input and output must be a terminal: use --once to print the state as text")
			}
			// Ctrl-C is an ordinary key and must not end the screen.
			return screen.Run(cmd.Context(), console.New(n, terminal.Plain(os.Getenv("TERM"))), 4)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "/run/basalt/api.sock", "`path` of the socket of basaltd")
	cmd.Flags().BoolVar(&once, "once", false, "print the state as text and exit")
	return cmd
}

// node acts on this machine.
type node struct{ console.Node }

func (node) Log(lines int) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "journalctl", "--unit=basaltd", "--no-pager", "--output=cat", "--lines="+strconv.Itoa(lines)).CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out)) + "\nrun journalctl: " + err.Error()
	}
	return string(out)
}

func (node) Reboot() error   { return systemctl("reboot") }
func (node) PowerOff() error { return systemctl("poweroff") }

func systemctl(verb string) error {
	if out, err := exec.Command("systemctl", verb).CombinedOutput(); err != nil {
		return fmt.Errorf("run systemctl %s: %w: %s", verb, err, strings.TrimSpace(string(out)))
	}
	return nil
}
