package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
)

// nodeHardware is the result of one check of a node's machine.
type nodeHardware struct {
	Node              string `json:"node,omitempty"`
	api.HardwareCheck `json:",inline"`
}

// probeHardware checks this machine.
func probeHardware(ctx context.Context) []api.HardwareCheck {
	return hardware.Checks(hardware.Probe(ctx, hardware.Options{}))
}

// hardwareCommand exits with 1 when a check has failed.
func (a *App) hardwareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hardware", Short: "Check the machine of a node, or of all", Args: cobra.NoArgs,
		Long: "Checks this machine, even before it belongs to a cluster; run it as root. With --all, shows the results of the\n" +
			"checks that every node of the cluster runs every ten minutes.\n" +
			"Problems are listed with their meaning and what to do. Exits with 1 if a check has failed.",
	}
	all := cmd.Flags().Bool("all", false, "show the results of every node of the cluster")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found := []nodeHardware{}
		if !*all {
			for _, c := range a.hardware(cmd.Context()) {
				found = append(found, nodeHardware{"", c})
			}
			return a.printHardware(found)
		}
		for n, err := range client.Of[api.Node](a.api).All(cmd.Context(), client.Query{}) {
			if err != nil {
				return err
			}
			for _, c := range n.Status.Hardware {
				found = append(found, nodeHardware{n.Meta.Name, c})
			}
			if len(n.Status.Hardware) == 0 {
				fmt.Fprintf(a.Err, "note: node %s has not reported its hardware\n", printable(n.Meta.Name))
			}
		}
		return a.printHardware(found)
	}
	return cmd
}

func (a *App) hardware(ctx context.Context) []api.HardwareCheck {
	if a.Hardware != nil {
		return a.Hardware(ctx)
	}
	return probeHardware(ctx)
}

// printHardware prints the results, and below them what the problems mean.
func (a *App) printHardware(found []nodeHardware) error {
	err := a.print(found, func() table { return hardwareTable(found) })
	if err != nil {
		return err
	}
	if a.flags.output == "table" {
		fmt.Fprint(a.Out, hardwareAdvice(found))
	}
	for _, f := range found {
		if f.State == api.HardwareFailed {
			return exitCode(1)
		}
	}
	return nil
}

func hardwareTable(found []nodeHardware) table {
	named := len(found) > 0 && found[0].Node != ""
	row := func(node string, more ...string) []string {
		if named {
			return append([]string{node}, more...)
		}
		return more
	}
	t := table{row("NODE", "CHECK", "STATE", "FOUND")}
	for _, f := range found {
		t = append(t, row(f.Node, string(f.ID), string(f.State), f.Found))
	}
	return t
}

// hardwareAdvice returns the meaning and the advice of the checks that are not ok.
func hardwareAdvice(found []nodeHardware) string {
	var b strings.Builder
	for _, f := range found {
		if f.State == api.HardwareOK || f.Meaning == "" && f.Advice == "" {
			continue
		}
		name := string(f.ID)
		if f.Node != "" {
			name = f.Node + ", " + name
		}
		fmt.Fprintf(&b, "\n%s: %s\n", printable(name), printable(f.Found))
		for _, text := range []string{f.Meaning, f.Advice} {
			if text != "" {
				fmt.Fprintf(&b, "  %s\n", printable(text))
			}
		}
	}
	return b.String()
}
