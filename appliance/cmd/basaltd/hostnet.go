package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet/trial"
)

// networkCommand declares and changes this node's own network. It works without the running
// basaltd, because the network may be what has failed.
func networkCommand(c *config) *cobra.Command {
	cmd := &cobra.Command{Use: "network", Short: "Declare this node's network (" + hostnet.File + "), and change it with a way back",
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { readInstalled(c, cmd) }}
	within, reach, due := trial.DefaultWithin, []string(nil), false
	apply := &cobra.Command{Use: "apply [FILE]", Args: cobra.MaximumNArgs(1),
		Short: "Put the declaration into use until it is confirmed; without that, the network before comes back",
		RunE: func(cmd *cobra.Command, args []string) error {
			return applyNetwork(cmd.Context(), *c, cmd.OutOrStdout(), networkFile(args), within, reach)
		}}
	apply.Flags().DurationVar(&within, "confirm-within", within, "time to confirm; then the network before comes back")
	apply.Flags().StringArrayVar(&reach, "reach", nil, "HOST:PORT that must still take connections, besides the gateway and the cluster's other nodes")
	rollback := &cobra.Command{Use: "rollback", Args: cobra.NoArgs, Short: "Take back what is on trial",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return rollBackNetwork(cmd.Context(), *c, cmd.OutOrStdout(), due)
		}}
	rollback.Flags().BoolVar(&due, "when-due", false, "the time to confirm is over: nothing on trial is no error")
	_ = rollback.Flags().MarkHidden("when-due")
	cmd.AddCommand(
		&cobra.Command{Use: "check [FILE]", Args: cobra.MaximumNArgs(1), Short: "Name everything that is wrong with a declaration",
			RunE: func(cmd *cobra.Command, args []string) error {
				return checkNetwork(cmd.OutOrStdout(), networkFile(args))
			}},
		&cobra.Command{Use: "show", Args: cobra.NoArgs, Short: "Show the network in force, and what is on trial",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return showNetwork(cmd.OutOrStdout(), trial.System, hostnet.File)
			}},
		&cobra.Command{Use: "ports", Args: cobra.NoArgs, Short: "Show what listens on this machine, and who may reach it",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return showPorts(cmd.Context(), *c, cmd.OutOrStdout())
			}},
		apply,
		&cobra.Command{Use: "confirm", Args: cobra.NoArgs, Short: "Keep what is on trial",
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := newTrial(*c).Confirm(cmd.Context()); err != nil {
					return fmt.Errorf("confirm: %w", err)
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "the network is confirmed")
				return err
			}},
		rollback)
	return cmd
}

// installedFile is the configuration file of an installed node.
const installedFile = "/etc/basalt/basaltd.yaml"

// readInstalled reads the node's configuration, which has the ports that the firewall opens. A
// file with mistakes must not prevent a rollback: the flags' default values are used then.
func readInstalled(c *config, cmd *cobra.Command) {
	if c.file == "" {
		c.file = installedFile
	}
	if err := readConfig(c.file, cmd.Flags()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(cmd.ErrOrStderr(), "basaltd: read configuration failed, using default values:", err)
	}
}

func networkFile(args []string) string {
	if len(args) == 0 {
		return hostnet.File
	}
	return args[0]
}

func newTrial(c config) *trial.Trial {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.logLevel)) // info if it is not a valid level
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: utc}))
	program, err := os.Executable()
	if err != nil {
		program = "/usr/bin/basaltd"
	}
	return &trial.Trial{Folders: trial.System, Machine: trial.Host{Program: program}, Firewall: loadFirewall(c), Log: log}
}

// readNetwork reads and parses a declaration.
func readNetwork(file string) ([]byte, hostnet.Network, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, hostnet.Network{}, err
	}
	n, err := hostnet.Parse(data)
	if err != nil {
		return nil, n, fmt.Errorf("%s:\n%w", file, err)
	}
	return data, n, nil
}

func checkNetwork(out io.Writer, file string) error {
	_, n, err := readNetwork(file)
	if err != nil {
		return err
	}
	if absent := trial.Absent(&n); len(absent) > 0 {
		return fmt.Errorf("%s: this machine has no card %s: `ip link` lists its cards", file, strings.Join(absent, ", "))
	}
	_, err = fmt.Fprintf(out, "%s is in order\n", file)
	return err
}

func applyNetwork(ctx context.Context, c config, out io.Writer, file string, within time.Duration, reach []string) error {
	if within < trial.MinWithin || within > trial.MaxWithin {
		return fmt.Errorf("--confirm-within %v: want %v to %v", within, trial.MinWithin, trial.MaxWithin)
	}
	data, n, err := readNetwork(file)
	if err != nil {
		return err
	}
	if absent := trial.Absent(&n); len(absent) > 0 {
		return fmt.Errorf("%s: this machine has no card %s: `ip link` lists its cards", file, strings.Join(absent, ", "))
	}
	// The terminal may be disconnected with the network that it uses: the change continues.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	t := newTrial(c)
	state, err := trial.Read(t.Folders)
	if err != nil {
		return fmt.Errorf("read the state of the declared network: %w", err)
	}
	var confirmed *hostnet.Network
	if state.Confirmed != nil {
		if old, err := hostnet.Parse(state.Confirmed); err == nil {
			confirmed = &old
		}
	}
	prober := trial.NewProber(ctx, confirmed, &n, append(peersOf(c), reach...))
	t.Probe = prober.Probe
	for _, target := range prober.Required() {
		fmt.Fprintf(out, "%s must answer\n", target)
	}
	if err := t.Apply(ctx, data, &n, within); err != nil {
		return fmt.Errorf("apply the declared network: %w", err)
	}
	_, err = fmt.Fprintf(out, "the network is on trial and works; `basaltd network confirm` within %v keeps it\n", within)
	return err
}

// peersOf returns the addresses of the cluster's other nodes according to this node's record.
func peersOf(c config) []string {
	r, err := membership.Load(membership.Dir(c.data))
	if err != nil {
		return nil
	}
	var all []string
	for id, addresses := range r.Peers {
		if id != r.Node {
			all = append(all, addresses...)
		}
	}
	return all
}

func rollBackNetwork(ctx context.Context, c config, out io.Writer, due bool) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	err := newTrial(c).Rollback(ctx)
	if due && errors.Is(err, trial.ErrNone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	_, err = fmt.Fprintln(out, "the network before is back")
	return err
}

func showNetwork(out io.Writer, folders trial.Folders, file string) error {
	s, err := trial.Read(folders)
	if err != nil {
		return fmt.Errorf("read the state of the declared network: %w", err)
	}
	var b bytes.Buffer
	switch {
	case s.Confirmed != nil:
		fmt.Fprintf(&b, "# in force\n%s", s.Confirmed)
	case len(s.Files) > 0:
		b.WriteString("# in force, from before there were declarations:\n")
		for _, f := range s.Files {
			b.WriteString("#   " + f.Name + "\n")
		}
	default:
		b.WriteString("# no declaration is in force: this machine's network is not Basalt's\n")
	}
	if s.OnTrial != nil {
		fmt.Fprintf(&b, "---\n# on trial until %s, unless it is confirmed\n%s", s.Until.UTC().Format(time.RFC3339), s.OnTrial)
	}
	written, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !bytes.Equal(written, s.Confirmed) && !bytes.Equal(written, s.OnTrial):
		fmt.Fprintf(&b, "# %s says something else: `basaltd network apply` puts it into use\n", file)
	}
	_, err = out.Write(b.Bytes())
	return err
}
