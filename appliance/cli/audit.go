package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Audit log: who changed what; and who has access"}
	cmd.AddCommand(a.auditList(), a.auditAccess(), a.auditVerify())
	return cmd
}

func (a *App) auditList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the newest events", Args: cobra.NoArgs,
		Example: "  basalt audit list --actor ann@example.com --from 2026-03-01\n  basalt audit list --kind Volume --removed"}
	var p api.ListAuditEventsParams
	count := cmd.Flags().Int("count", 50, "maximum number of results; 0: all")
	cmd.Flags().BoolVar(&p.Oldest, "oldest", false, "oldest first")
	cmd.Flags().StringVar(&p.Actor, "actor", "", "filter by user or API key, name or ID")
	cmd.Flags().StringVar(&p.Operation, "operation", "", "filter by operation, e.g. DeleteInstance")
	kind := cmd.Flags().String("kind", "", "filter by kind, e.g. Volume")
	cmd.Flags().StringVar(&p.Object, "object", "", "filter by object, name or ID")
	cmd.Flags().BoolVar(&p.Removed, "removed", false, "only permanent deletions")
	from := cmd.Flags().String("from", "", "from this time, e.g. 2026-03-01 or 2026-03-01T12:00:00Z")
	to := cmd.Flags().String("to", "", "before this time")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		p.Organization, p.Kind = a.config.Organization, api.Kind(*kind)
		if p.From, err = moment(*from, time.Time{}); err != nil {
			return err
		}
		if p.To, err = moment(*to, time.Time{}); err != nil {
			return err
		}
		events := []api.AuditEvent{}
		for e, err := range a.api.AuditEvents(cmd.Context(), p) {
			if err != nil {
				return err
			}
			if events = append(events, e); len(events) == *count {
				break
			}
		}
		return a.print(events, func() table {
			t := table{{"EVENT", "TIME", "WHO", "ROLE", "FROM", "OPERATION", "WHAT"}}
			for _, e := range events {
				t = append(t, []string{strconv.FormatInt(e.Seq, 10), formatTime(e.At), first(e.Name, e.Actor), string(e.Role), e.From, e.Operation, auditWords(e)})
			}
			return t
		})
	}
	return cmd
}

func auditWords(e api.AuditEvent) string {
	var words []string
	for _, o := range e.Objects {
		w := string(o.Kind) + " " + first(o.Name, o.ID)
		if o.Removed {
			w += " (removed)"
		}
		words = append(words, w)
	}
	if e.More > 0 {
		words = append(words, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(words, ", ")
}

func (a *App) auditVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Verify that no event was changed, added or removed", Args: cobra.NoArgs,
		Long: "Reads the whole audit log and verifies the hash of each event, which covers the previous one. If the last hash\n" +
			"equals one that you stored elsewhere, the log is unchanged up to that event. For operators.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			me, err := a.api.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			if me.Role != api.RoleOperator {
				return api.Errorf(api.CodeForbidden, "verifying the whole audit log needs role operator").WithHint("basalt audit list shows the events of your organization")
			}
			var last api.AuditEvent
			for e, err := range a.api.AuditEvents(cmd.Context(), api.ListAuditEventsParams{Oldest: true}) {
				if err != nil {
					return err
				}
				if !e.Follows(last) {
					return api.Errorf(api.CodeConflict, "event %d does not follow event %d: the audit log was changed", e.Seq, last.Seq).
						WithHint("compare it with the one in a backup: basalt cluster backup")
				}
				last = e
			}
			fmt.Fprintf(a.Out, "%d events verified, none was changed. The hash of the last is\n%s\n", last.Seq, first(last.Hash, "(none)"))
			return nil
		},
	}
}
