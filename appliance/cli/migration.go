package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) migrations() *kind[api.Migration] {
	k := &kind[api.Migration]{
		app: a, noun: "migration", about: "Migrations of instances and volumes", readOnly: true,

		refs:    []api.Kind{api.KindNode, api.KindInstance, api.KindVolume},
		columns: []string{"PHASE", "OF", "FROM", "TO", "DONE", "DOWNTIME", "NOTE"},
		row: func(m api.Migration) []string {
			st, done, down := m.Status, "", ""
			if st.TotalBytes > 0 {
				done = fmt.Sprintf("%d%% of %s", 100*st.ProgressBytes/st.TotalBytes, formatSize(st.TotalBytes))
			}
			if st.DowntimeMillis > 0 {
				down = fmt.Sprintf("%d ms", st.DowntimeMillis)
			}
			return []string{migrationPhase(m), a.named(m.Spec.Subject().ID), a.named(string(m.Assignment.Source)),
				a.named(string(cmp.Or(m.Assignment.Target, m.Spec.Target))), done, down, cmp.Or(m.Assignment.Reason, st.LastError)}
		},
		ready: migrationReady,
	}
	k.more = []*cobra.Command{abortCommand(k), k.deleteCommand()}
	return k
}

// migrationPhase returns the cluster's final decision if the migration has ended, else what the
// source is doing.
func migrationPhase(m api.Migration) string {
	switch {
	case m.Assignment.Phase.Ended():
		return string(m.Assignment.Phase)
	case m.Spec.Abort:
		return "Aborting"
	}
	return string(cmp.Or(m.Status.Phase, m.Assignment.Phase, api.MigrationPending))
}

func migrationReady(m api.Migration) (bool, string, error) {
	doing := migrationPhase(m)
	if st := m.Status; st.TotalBytes > 0 && !m.Assignment.Phase.Ended() {
		doing += fmt.Sprintf(": %s of %s", formatSize(st.ProgressBytes), formatSize(st.TotalBytes))
	}
	switch m.Assignment.Phase {
	case api.MigrationSucceeded:
		return true, doing, nil
	case api.MigrationFailed, api.MigrationAborted:
		return false, doing, api.Errorf(api.CodeState, "nothing was migrated: %s", cmp.Or(m.Assignment.Reason, m.Status.LastError, string(m.Assignment.Phase)))
	}
	return false, doing, nil
}

func abortCommand(k *kind[api.Migration]) *cobra.Command {
	return &cobra.Command{
		Use: "abort NAME|ID", Short: "Abort a migration; the instance or volume stays on its node", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := k.change(cmd.Context(), args[0], func(m *api.Migration) error {
				if m.Assignment.Phase.Ended() {
					return api.Errorf(api.CodeState, "migration %s has already ended: %s", m.Meta.Name, m.Assignment.Phase)
				}
				m.Spec.Abort = true
				return nil
			})
			if err != nil {
				return err
			}
			return k.printOne(cmd.Context(), o)
		},
	}
}

// migrateCommand creates a migration of an instance and follows it.
func (a *App) migrateCommand(instances *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate NAME|ID", Short: "Migrate an instance to another node", Args: cobra.ExactArgs(1),
		Long: "A running instance keeps running, unless it has a virtual GPU: then stop it first. Its root disk is copied if the nodes do not share its storage.\n\n" +
			"Of a stopped instance, all disks that only its node has are copied, with their snapshots, UEFI variables and TPM. If it is started meanwhile, it waits for the end of the migration.",
	}
	a.runMigration(cmd, func(ctx context.Context, name string) (s api.MigrationSpec, what string, err error) {
		in, err := instances.get(ctx, name)
		s.Instance = api.InstanceID(in.Meta.ID)
		return s, "instance " + in.Meta.Name, err
	})
	return cmd
}

// migrateVolumeCommand creates a migration of a volume and follows it.
func (a *App) migrateVolumeCommand(volumes *kind[api.Volume]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate NAME|ID", Short: "Migrate a detached volume to another node", Args: cobra.ExactArgs(1),
		Long: "The volume, which is in a pool of its node and attached to no instance, is copied with its snapshots. The copy of a clone has the data that the clone shares with its snapshot, and takes the room for that.\n\n" +
			"If the volume is attached meanwhile, the migration ends and the volume stays. Volumes of an instance are migrated with it: basalt instance migrate.",
	}
	a.runMigration(cmd, func(ctx context.Context, name string) (s api.MigrationSpec, what string, err error) {
		v, err := volumes.get(ctx, name)
		s.Volume = api.VolumeID(v.Meta.ID)
		return s, "volume " + v.Meta.Name, err
	})
	return cmd
}

// runMigration makes the command create a migration of what find returns, with its name
// in sentences.
func (a *App) runMigration(cmd *cobra.Command, find func(ctx context.Context, name string) (s api.MigrationSpec, what string, err error)) {
	to := cmd.Flags().String("to", "", "target node, name or ID; default: automatic")
	_ = cmd.RegisterFlagCompletionFunc("to", a.nodes().completeFlag) // elsewhere, --to is a time
	k := a.migrations()
	w := k.writeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, what, err := find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		s.Target = api.NodeID(*to)
		m, err := k.target(*w).Create(cmd.Context(), api.Migration{Spec: s})
		if err != nil {
			return err
		}
		if *w.dry {
			return k.printTried(cmd.Context(), m, "a migration of "+what+" would be created")
		}
		return k.finish(cmd.Context(), m, *w, "created")
	}
}
