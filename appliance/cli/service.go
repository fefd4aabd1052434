package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// serviceCommand shows the services that external billing systems have sold. These systems
// create and end services themselves.
func (a *App) serviceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "service", Short: "Services sold by a billing system, e.g. WHMCS; NAME is INSTALLATION:SERVICE"}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "List services, including ended ones", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			list := []api.Service{}
			for s, err := range client.Of[api.Service](a.api).All(cmd.Context(), client.Query{}) {
				if err != nil {
					return err
				}
				list = append(list, s)
			}
			return a.print(list, func() table { return a.serviceTable(list) })
		}},
		&cobra.Command{Use: "show NAME|ID", Short: "Show a service and its current state", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			s, err := client.Of[api.Service](a.api).Get(cmd.Context(), args[0], client.Query{})
			if err != nil {
				return err
			}
			return a.print(s, func() table {
				t := a.serviceTable([]api.Service{s})
				for _, line := range [][2]string{{"reason", s.Status.Reason}, {"last error", s.Status.LastError}, {"pending", s.Status.Pending}} {
					if line[1] != "" {
						t = append(t, []string{line[0] + ": " + line[1]})
					}
				}
				return t
			})
		}})
	return cmd
}

func (a *App) serviceTable(list []api.Service) table {
	t := table{{"NAME", "ID", "TYPE", "PHASE", "CUSTOMER", "ORGANIZATION", "MACHINE", "ADDRESSES"}}
	for _, s := range list {
		t = append(t, []string{s.Meta.Name, s.Meta.ID, string(s.Spec.Type), string(s.Status.Phase), s.Spec.Email, string(s.Spec.Organization),
			string(s.Spec.Instance), strings.Join(s.Status.Addresses, ", ")})
	}
	return t
}
