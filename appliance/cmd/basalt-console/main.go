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
		Use: "basalt-console", Short: "Show this node's state on the whole screen", Version: version, Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			n := node{console.Node{Socket: socket, Version: version}}
			if once {
				fmt.Fprintln(cmd.OutOrStdout(), console.Text(n.Look(cmd.Context())))
				return nil
			}
			if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
				return errors.New("this is no terminal: --once prints the state")
			}
			// Ctrl-C must not end the screen: it is a key as any other.
			return screen.Run(cmd.Context(), console.New(n, terminal.Plain(os.Getenv("TERM"))), 4)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "/run/basalt/api.sock", "basaltd's socket")
	cmd.Flags().BoolVar(&once, "once", false, "print the state as text and end")
	return cmd
}

// node acts on this machine.
type node struct{ console.Node }

func (node) Log(lines int) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "journalctl", "--unit=basaltd", "--no-pager", "--output=cat", "--lines="+strconv.Itoa(lines)).CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out)) + "\njournalctl: " + err.Error()
	}
	return string(out)
}

func (node) Reboot() error   { return systemctl("reboot") }
func (node) PowerOff() error { return systemctl("poweroff") }

func systemctl(verb string) error {
	if out, err := exec.Command("systemctl", verb).CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s: %w %s", verb, err, strings.TrimSpace(string(out)))
	}
	return nil
}
