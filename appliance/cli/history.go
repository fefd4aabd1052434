package cli

import (
	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

// historyCommand shows the state changes of an instance.
func (a *App) historyCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{Use: "history NAME|ID", Short: "Show state changes, newest first", Args: cobra.ExactArgs(1),
		Long: "Shows state changes, nodes and requests. `basalt audit list --object` shows who made them. The history is deleted with the instance."}
	count := cmd.Flags().Int("count", 50, "maximum number of events; 0: all that are kept")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		i, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if *count < 0 || *count > api.MaxHistory {
			return usagef("--count %d is out of range: at most %d events are kept", *count, api.MaxHistory)
		}
		page, err := a.api.InstanceEvents(cmd.Context(), i.Meta.ID, *count, "")
		if err != nil {
			return err
		}
		return a.print(page.Items, func() table {
			a.learn(cmd.Context(), []api.Kind{api.KindNode})
			t := table{{"TIME", "STATE", "NODE", "REQUEST", "NOTE"}}
			for _, e := range page.Items {
				t = append(t, []string{formatTime(e.At), e.State, a.named(string(e.Node)), e.Operation, e.Message})
			}
			return t
		})
	}
	return cmd
}
