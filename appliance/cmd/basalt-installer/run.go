package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/answers/source"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/install/unattended"
	"github.com/basalt-gpu/basalt/installer/machine/network"
	"github.com/basalt-gpu/basalt/installer/tui"
	"github.com/basalt-gpu/basalt/installer/tui/screen"
	"github.com/basalt-gpu/basalt/installer/tui/terminal"
)

func runCommand() *cobra.Command {
	var file, image, log string
	cmd := &cobra.Command{
		Use: "run", Short: "Install this machine: asks, or with --answers does not",
		Long: `Install this machine.

Without --answers the installer asks. --answers FILE installs from that file.
--answers auto looks for one: basalt.answers= on the kernel's command line
(LABEL:/path, /dev/sdb1:/path or a URL; a URL needs basalt.network=dhcp or
basalt.network=CARD,ADDRESS/PREFIX,GATEWAY), else answers.yaml on a medium with
the label BASALT-ANS; without one it asks.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Getuid() != 0 {
				return errors.New("only root can install a machine")
			}
			sys, err := newSystem(image, log)
			if err != nil {
				return err
			}
			return run(cmd.Context(), sys, file)
		},
	}
	cmd.Flags().StringVar(&file, "answers", "", "answer file, or auto")
	cmd.Flags().StringVar(&image, "image", install.Source, "image of the system")
	cmd.Flags().StringVar(&log, "log", tui.LogFile, "log file")
	return cmd
}

func run(ctx context.Context, sys *system, file string) error {
	if file == "" {
		return ask(ctx, sys)
	}
	out := io.MultiWriter(os.Stdout, sys.log)
	for {
		after, err := withoutQuestions(ctx, sys, file, out)
		switch {
		case errors.Is(err, fs.ErrNotExist) && file == "auto":
			return ask(ctx, sys)
		case err == nil:
			fmt.Fprintf(out, unattended.Prefix+"%s\n", after)
			return sys.End(after)
		}
		unattended.Explain(err, out)
		if again := stay(sys); !again {
			return errSaid
		}
	}
}

// withoutQuestions reads the answers and installs without interaction.
func withoutQuestions(ctx context.Context, sys *system, file string, out io.Writer) (answers.After, error) {
	data, err := []byte(nil), error(nil)
	if file == "auto" {
		data, err = find(ctx, sys, out)
	} else if data, err = readAnswers(file, os.Stdin); errors.Is(err, fs.ErrNotExist) {
		err = api.Errorf(api.CodeNotFound, "there is no file %s", file).WithHint("check its path")
	}
	if err != nil {
		return "", err
	}
	for _, c := range hardware.Failed(sys.Hardware(ctx)) { // reported only, because the installation is unattended
		fmt.Fprintf(out, unattended.Prefix+"hardware, %s: %s. %s\n", c.ID, c.Found, c.Meaning)
	}
	return unattended.Run(ctx, sys, data, out)
}

// find returns the answer file of --answers auto.
func find(ctx context.Context, sys *system, out io.Writer) ([]byte, error) {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	s, err := source.FromCommandLine(string(line))
	if err != nil {
		return nil, fmt.Errorf("read the command line of the kernel: %w", err)
	}
	if s.URL != "" {
		if err := connect(ctx, sys, s, out); err != nil {
			return nil, err
		}
	}
	data, err := source.Read(ctx, s, "/run/basalt-installer/answers")
	if err != nil {
		return nil, fmt.Errorf("read the answers: %w", err)
	}
	fmt.Fprintf(out, unattended.Prefix+"answers from %s\n", s)
	return data, nil
}

// connect brings up the network of the kernel's command line, from which the answers are
// fetched.
func connect(ctx context.Context, sys *system, s source.Source, out io.Writer) error {
	nics, err := sys.NICs(ctx)
	if err != nil {
		return err
	}
	p := answers.Path{DHCP: s.DHCP, Address: s.Addr}
	for _, n := range nics {
		if s.Card != "" && n.Name != s.Card || s.Card == "" && !n.Link {
			continue
		}
		var dns []netip.Addr
		if s.DNS.IsValid() {
			dns = append(dns, s.DNS)
		}
		up, checks := sys.Try(ctx, "main", n, p, s.Router, dns)
		if !network.Failed(checks) {
			fmt.Fprintf(out, unattended.Prefix+"%s has %s\n", n.Name, up.Address)
			return nil
		}
	}
	return api.Errorf(api.CodeUnavailable, "no card got the network of basalt.network").WithHint("check cables and the card's name: basalt-installer machine")
}

// ask runs the interactive installation.
func ask(ctx context.Context, sys *system) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return errors.New("there is no terminal to ask on: give --answers FILE")
	}
	m := tui.New(sys, tui.Options{Version: version, Plain: terminal.Plain(os.Getenv("TERM")), Now: time.Now})
	return errors.Join(screen.Run(ctx, m, 15), ctx.Err())
}

// stay keeps the machine from continuing after a failure, so that the failure can be examined.
// It returns true to try again.
func stay(sys *system) bool {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return false
	}
	in := bufio.NewReader(os.Stdin)
	for {
		fmt.Print("\nThe installation has failed; the log is " + tui.LogFile + ".\nEnter: a shell   r Enter: try again   b Enter: restart the computer\n> ")
		line, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		switch strings.TrimSpace(line) {
		case "r":
			return true
		case "b":
			if err := sys.End(answers.Reboot); err != nil {
				fmt.Println(err)
			}
			return false
		default:
			shell := sys.Shell()
			shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, os.Stdout, os.Stderr
			if err := shell.Run(); err != nil {
				fmt.Println("the shell ended:", err)
			}
		}
	}
}
