package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "doctor", Short: "Diagnose problems", Args: cobra.NoArgs}
	cmd.AddCommand(a.hardwareCommand(), a.leaksCommand())
	return cmd
}

// leaksCommand exits with 1 when it lists an orphaned resource.
func (a *App) leaksCommand() *cobra.Command {
	return &cobra.Command{
		Use: "leaks", Short: "List orphaned resources on the nodes", Args: cobra.NoArgs,
		Long: "Lists virtual machines, virtual GPUs, files, ports, volumes and images of objects that the cluster does not know\n" +
			"or that belong to another node, and rows of such objects in OVN. They are removed within minutes, rows in OVN\n" +
			"when the network next changes. Please report a bug if one is still listed after that.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := []nodeLeak{}
			var errs []error
			for n, err := range client.Of[api.Node](a.api).All(cmd.Context(), client.Query{}) {
				if err != nil {
					return err
				}
				all, err := a.api.NodeLeaks(cmd.Context(), n.Meta.ID)
				if err != nil {
					errs = append(errs, fmt.Errorf("node %s: %w", n.Meta.Name, err))
				}
				for _, l := range all.Items {
					found = append(found, nodeLeak{n.Meta.Name, l})
				}
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			if len(found) == 0 && a.flags.output == "table" {
				fmt.Fprintln(a.Out, "no orphaned resources found")
				return nil
			}
			err := a.print(found, func() table {
				t := table{{"NODE", "KIND", "ID", "RESOURCE"}}
				for _, l := range found {
					t = append(t, []string{l.Node, l.Kind, l.ID, l.What})
				}
				return t
			})
			if err == nil && len(found) > 0 {
				err = exitCode(1)
			}
			return err
		},
	}
}

type nodeLeak struct {
	Node     string `json:"node"`
	api.Leak `json:",inline"`
}
