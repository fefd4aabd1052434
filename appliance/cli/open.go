package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func openCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "open NAME|ID", Short: "Print a link that opens what an instance serves in a browser", Args: cobra.ExactArgs(1),
		Long: "Prints a link through the cluster's app gateway to a port of the instance that serves HTTP. It is for one browser, within\na minute. Programs use the address without a link, with an API key: Authorization: Bearer bslt_…",
	}
	port := cmd.Flags().Int64("port", 0, "TCP port of the instance; default: that of its app")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a := k.app
		in, c, err := a.connection(cmd.Context(), k, args[0])
		if err != nil {
			return err
		}
		if *port == 0 && c.AppDomain != "" {
			if *port, err = onlyApp(in.Meta.Name, c.Apps); err != nil {
				return err
			}
		}
		link, err := a.api.OpenApp(cmd.Context(), in.Meta.ID, max(*port, 1))
		if err != nil {
			return err
		}
		return a.print(link, func() table { return table{{"LINK"}, {link.URL}} })
	}
	return cmd
}

// onlyApp returns the port of the app that an instance serves, if it is exactly one.
func onlyApp(instance string, apps []api.InstanceApp) (int64, error) {
	switch len(apps) {
	case 0:
		return 0, usagef("instance %s was not created from an app: give --port", instance)
	case 1:
		return apps[0].Port, nil
	}
	var all []string
	for _, app := range apps {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s", app.Port, app.Name)))
	}
	return 0, usagef("instance %s serves %s: give --port", instance, strings.Join(all, ", "))
}
