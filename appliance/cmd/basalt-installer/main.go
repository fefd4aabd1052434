// Command basalt-installer installs a Basalt node on a disk, interactively or with an answer
// file. It also validates answer files on any machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// version is set by the linker.
var version = "dev"

// errSaid is an error that has been reported already.
var errSaid = errors.New("")

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	cancel()
	switch {
	case err == nil:
	case errors.Is(err, errSaid):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "basalt-installer:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use: "basalt-installer", Short: "Install a Basalt node", Version: version,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(runCommand(), validateCommand(), machineCommand())
	return root
}

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE", Short: "Check an answer file: every mistake, with its line (exit 2); - reads standard input",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return validate(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func validate(name string, stdin io.Reader, out io.Writer) error {
	data, err := readAnswers(name, stdin)
	if err != nil {
		return err
	}
	a, err := answers.Parse(data)
	var ms strictyaml.Mistakes
	if errors.As(err, &ms) {
		for _, m := range ms {
			fmt.Fprintf(out, "%s: %s\n", name, m)
		}
		fmt.Fprintf(out, "%d mistake(s)\n", len(ms))
		return errSaid
	}
	if err != nil {
		return err
	}
	what := "joins a cluster"
	if a.Cluster.Init != "" {
		what = "makes the cluster " + a.Cluster.Init
	}
	fmt.Fprintf(out, "%s is valid: %s %s\n", name, a.Hostname, what)
	return nil
}

// readAnswers reads at most one byte more than an answer file may have.
func readAnswers(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, strictyaml.MaxBytes+1))
}

func machineCommand() *cobra.Command {
	return &cobra.Command{
		Use: "machine", Short: "List this machine's disks and network cards", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			disks, err := machine.ReadDisks(cmd.Context(), "")
			if err != nil {
				return fmt.Errorf("list the disks: %w", err)
			}
			nics, err := machine.ReadNICs()
			if err != nil {
				return fmt.Errorf("list the network cards: %w", err)
			}
			inventory(cmd.OutOrStdout(), disks, nics)
			return nil
		},
	}
}

func inventory(out io.Writer, disks []machine.Disk, nics []machine.NIC) {
	for _, d := range disks {
		fmt.Fprintf(out, "disk %s  %s  model %q  serial %q\n", d.Path, machine.Bytes(d.SizeBytes), d.Model, d.Serial)
		if len(d.ByID) > 0 {
			fmt.Fprintf(out, "     by id: %s\n", strings.Join(d.ByID, " "))
		}
		for _, c := range d.Contents {
			fmt.Fprintf(out, "     has %s\n", c)
		}
		if d.Refusal != nil {
			fmt.Fprintf(out, "     cannot be chosen: %s (%s)\n", d.Refusal.Reason, d.Refusal.Hint)
		}
	}
	for _, n := range nics {
		fmt.Fprintf(out, "card %s  %s  %s  %s\n", n.Name, n.MAC, n.Speed(), n.Driver)
	}
}
