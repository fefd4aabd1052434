package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) joinTokens() *kind[api.JoinToken] {
	k := &kind[api.JoinToken]{
		app: a, noun: "join-token", about: "Join tokens for new nodes",

		refs:    []api.Kind{api.KindNode},
		columns: []string{"EXPIRES", "USED BY"},
		row: func(t api.JoinToken) []string {
			expires := ""
			if t.Spec.ExpiresAt != nil {
				expires = formatTime(*t.Spec.ExpiresAt)
			}
			return []string{expires, a.named(string(t.Status.UsedBy))}
		},
	}
	k.more = []*cobra.Command{k.deleteCommand()}
	return k
}

// nodeCommands returns the commands of nodes beyond those of every kind.
func (a *App) nodeCommands(k *kind[api.Node]) []*cobra.Command {
	return []*cobra.Command{a.nodeTokenCommand(), a.nodeJoinCommand(), a.nodeRebuildCommand(), a.nodeLeaveCommand(), a.nodeRemoveCommand(k),
		drainCommand(k, "drain", "Drain a node: migrate its instances and accept no new ones", true),
		drainCommand(k, "undrain", "Return a node to service", false)}
}

func (a *App) nodeRemoveCommand(k *kind[api.Node]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove NAME|ID", Short: "Remove a node from the cluster", Args: cobra.ExactArgs(1),
		Long: "The node must be drained, or lost. With --force it may still have instances: they are started on other nodes, or\n" +
			"lost with its disks. Use --force only if the node is permanently powered off.",
	}
	force := cmd.Flags().Bool("force", false, "the node is permanently powered off")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		n, err = a.api.RemoveNode(cmd.Context(), n.Meta.ID, *force)
		if err != nil {
			return err
		}
		if n.Spec.Off {
			fmt.Fprintf(a.Err, "node %s gets no new lease; it is removed when its last lease has expired\n", n.Meta.Name)
			if err := k.awaitGone(cmd.Context(), n, waiting{timeout: 2 * time.Minute}); err != nil {
				return err
			}
		}
		fmt.Fprintf(a.Err, "node %s removed\n", n.Meta.Name)
		return nil
	}
	return cmd
}

func drainCommand(k *kind[api.Node], verb, about string, drain bool) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " NAME|ID", Short: about, Args: cobra.ExactArgs(1)}
	if drain {
		cmd.Long = "Instances without a virtual GPU are live-migrated; others are stopped and started on another node,\n" +
			"if their disks are available there."
	}
	w := k.waitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := k.change(cmd.Context(), args[0], func(n *api.Node) error { n.Spec.Drain = drain; return nil })
		if err == nil {
			n, err = k.await(cmd.Context(), n, *w)
		}
		if err != nil {
			return err
		}
		return k.printOne(cmd.Context(), n)
	}
	return cmd
}

// nodeReady reports whether a node is drained, if that was requested, or accepts work.
func nodeReady(n api.Node) (bool, string, error) {
	a := n.Assignment
	doing := string(a.State)
	if a.Reason != "" {
		doing += ": " + a.Reason
	}
	if n.Spec.Drain {
		return a.State == api.NodeDrained, doing, nil
	}
	return a.State == api.NodeReady || a.State == "", doing, nil
}
