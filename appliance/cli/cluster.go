package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

func (a *App) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Manage the cluster"}
	cmd.AddCommand(a.clusterInitCommand(), a.clusterStatusCommand(), a.clusterBackupCommand(), a.clusterRestoreCommand(), a.clusterRecoverCommand(), a.clusterCACommand(),
		a.clusterUpgradeCommand())
	return cmd
}

// local is the help of commands that work only on the node's own socket.
const local = "Run this command as root on the node itself: it uses the node's own socket."

func (a *App) clusterInitCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "init", Short: "Initialize a new cluster on this node", Long: local, Args: cobra.NoArgs}
	name := cmd.Flags().String("name", "basalt", "name of the cluster")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := a.api.SetupInit(cmd.Context(), *name); err != nil {
			return err
		}
		s, err := a.awaitMember(cmd.Context(), time.Minute, nil)
		if err != nil {
			return err
		}
		return a.print(s, func() table { return setupTable(s) })
	}
	return cmd
}

func (a *App) nodeJoinCommand() *cobra.Command {
	return &cobra.Command{
		Use: "join TOKEN", Short: "Join this node to a cluster", Args: cobra.ExactArgs(1),
		Long: local + "\nCreate the token with `basalt node token create` on a member. It can be used once.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := a.api.SetupJoin(cmd.Context(), args[0]); err != nil {
				return err
			}
			s, err := a.awaitMember(cmd.Context(), time.Minute, nil)
			if err != nil {
				return err
			}
			return a.print(s, func() table { return setupTable(s) })
		},
	}
}

// awaitMember waits until the node, which restarts its services, answers as a member with
// quorum. report, if not nil, is called with each new message of the node.
func (a *App) awaitMember(parent context.Context, limit time.Duration, report func(string)) (last api.Setup, err error) {
	ctx, cancel := context.WithTimeout(parent, limit)
	defer cancel()
	reported, state := "", "its socket is not responding"
	for {
		s, err := a.api.Setup(ctx)
		switch {
		case err == nil && s.State == api.SetupMember && s.Quorum:
			return s, nil
		case err == nil:
			if state = "its state is " + string(s.State); s.Message != "" {
				state += ": " + s.Message
			}
			if report != nil && s.Message != "" && s.Message != reported {
				reported = s.Message
				report(reported)
			}
		}
		select {
		case <-parent.Done():
			return s, parent.Err()
		case <-ctx.Done():
			return s, api.Errorf(codeTimeout, "the node did not become a member that reaches most of its cluster within %s; %s", limit, state).
				WithHint("it continues without this command: basalt cluster status on the node shows its state")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ownSocket explains the error of a server that is not a node's own socket.
func ownSocket(err error) error {
	if api.CodeOf(err) != api.CodeNotFound {
		return err
	}
	return api.Errorf(api.CodeNotFound, "the server is not a node's own socket").
		WithHint("run it as root on the node itself, with --server unix:/run/basalt/api.sock")
}

func setupTable(s api.Setup) table {
	return table{{"NODE", "STATE", "CLUSTER", "MEMBERS", "LEADER", "API"},
		{s.Node, string(s.State), s.Cluster, fmt.Sprintf("%d of %d reachable", s.Alive, s.Members), s.Leader, firstOf(s.Addresses)}}
}

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func (a *App) clusterStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the cluster's members, leader and health", Args: cobra.NoArgs,
		Long: "With an operator's API key, shows the whole cluster. On a node's own socket without a key, shows what the node knows.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.config.Token == "" {
				s, err := a.api.Setup(cmd.Context())
				if err != nil {
					return err
				}
				if err := a.print(s, func() table { return setupTable(s) }); err != nil || s.Message == "" || a.flags.output != "table" {
					return err
				}
				_, err = fmt.Fprintln(a.Out, printable(s.Message))
				return err
			}
			c, err := a.api.Cluster(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(c, func() table { return a.memberTable(c) })
		},
	}
}

func (a *App) memberTable(c api.Cluster) table {
	t := table{{"NAME", "STATE", "ROLE", "LAST HEARD", "PEER ADDRESS", "API", "VERSION", "NOTE"}}
	for _, m := range c.Members {
		role := "follower"
		switch {
		case m.Leader:
			role = "leader"
		case m.Voter:
			role = "voter"
		}
		heard := "never"
		if m.HeardAt != nil {
			heard = formatAge(a.Now(), *m.HeardAt)
		}
		t = append(t, []string{m.Name, string(m.State), role, heard, firstOf(m.PeerAddresses), m.APIAddress, m.Version, m.Reason})
	}
	return t
}

func (a *App) clusterBackupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Back up the control plane's state to a file", Args: cobra.ExactArgs(1),
		Long: "The backup contains all objects, hashes of API keys, usage records and the cluster's CA: protect it like a private key.\n" +
			"It does not contain the disks of instances.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := atomicfile.Write(args[0], 0o600, func(f *os.File) error {
				bar := a.progress("backup", 0)
				defer bar.end()
				return a.api.Backup(cmd.Context(), io.MultiWriter(f, bar))
			}); err != nil {
				return err
			}
			fmt.Fprintf(a.Err, "backup written to %s\n", args[0])
			return nil
		},
	}
}

func (a *App) clusterRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "Restore a cluster on this node from a backup", Args: cobra.ExactArgs(1),
		Long: local + "\nThe node must not belong to a cluster. The backup also contains the old nodes: remove each one with\n" +
			"`basalt node remove NAME --force` once it is certainly powered off.",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := a.api.SetupRestore(cmd.Context(), f); err != nil {
				return err
			}
			s, err := a.awaitMember(cmd.Context(), time.Minute, nil)
			if err != nil {
				return err
			}
			return a.print(s, func() table { return setupTable(s) })
		},
	}
}

func (a *App) clusterRecoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "recover --i-am NODE", Short: "Recover the cluster on this node after most nodes are permanently lost", Args: cobra.NoArgs,
		Long: local + "\nAll other nodes must be permanently powered off: their instances are started here, and they can only rejoin\n" +
			"with empty data directories. Changes that only they had acknowledged may be lost.",
	}
	confirm := cmd.Flags().String("i-am", "", "this node's name, to confirm")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *confirm == "" {
			return usagef("--i-am NODE is required")
		}
		if _, err := a.api.SetupRecover(cmd.Context(), *confirm); err != nil {
			return err
		}
		s, err := a.awaitMember(cmd.Context(), time.Minute, nil)
		if err != nil {
			return err
		}
		return a.print(s, func() table { return setupTable(s) })
	}
	return cmd
}

func (a *App) nodeRebuildCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rebuild", Short: "Rebuild this node's copy of the cluster state from the other nodes", Args: cobra.NoArgs,
		Long: local + "\nFor a node whose copy of the cluster state is lost, damaged, or differs from the others'. The node stops voting,\n" +
			"receives everything from the other nodes, and votes again when it has caught up. Its instances keep running.\n" +
			"The old copy is kept as store.damaged. The rebuild continues if this command is interrupted.",
	}
	limit := cmd.Flags().Duration("timeout", 10*time.Minute, "how long to wait until the node is a member again")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := a.api.SetupRebuild(cmd.Context()); err != nil {
			return ownSocket(err)
		}
		s, err := a.awaitMember(cmd.Context(), *limit, func(text string) { fmt.Fprintln(a.Err, printable(text)) })
		if err != nil {
			return err
		}
		return a.print(s, func() table { return setupTable(s) })
	}
	return cmd
}

func (a *App) nodeLeaveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "leave", Short: "Remove this node from its cluster", Args: cobra.NoArgs, Long: local + "\nDrain it first.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := a.api.SetupLeave(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(a.Err, "this node has left its cluster")
			return nil
		},
	}
}

func (a *App) nodeTokenCommand() *cobra.Command {
	k := a.joinTokens()
	cmd := k.command()
	cmd.Use = "token"
	create := &cobra.Command{Use: "create", Short: "Create a join token for one new node, and print it", Args: cobra.NoArgs}
	lasts := create.Flags().Duration("expires-in", api.DefaultTokenLife, "how long it can be used")
	create.RunE = func(cmd *cobra.Command, _ []string) error {
		at := a.Now().Add(*lasts).UTC().Truncate(time.Second)
		t, err := client.Of[api.JoinToken](a.api).Create(cmd.Context(), api.JoinToken{Spec: api.JoinTokenSpec{ExpiresAt: &at}})
		if err != nil {
			return err
		}
		if a.flags.output != "table" {
			return a.print(t, nil)
		}
		fmt.Fprintf(a.Err, "run on the new node: basalt node join TOKEN (valid once, until %s)\n", formatTime(at))
		_, err = fmt.Fprintln(a.Out, t.Token)
		return err
	}
	cmd.AddCommand(create)
	return cmd
}
