package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) kinds() []anyKind {
	return []anyKind{a.instances(), a.volumes(), a.images(), a.flavors(), a.apps(), a.pools(), a.gpus(), a.nodes(),
		a.organizations(), a.projects(), a.apiKeys(), a.users(), a.groups(), a.sshKeys(), a.identityProviders(), a.webhooks(), a.supportGrants(), a.portalDomains(), a.mailMessages(), a.mailSuppressions(), a.usageRecords(), a.invoices(), a.creditNotes(), a.payments(), a.refunds(), a.disputes(), a.vatChecks(), a.checkouts(), a.cards(), a.vouchers(), a.budgets(), a.priceBooks(),
		a.migrations(), a.joinTokens(), a.upgrades(),
		a.networks(), a.securityGroups(), a.externalNetworks(), a.routers(), a.floatingIPs(), a.loadBalancers(),
		a.snapshots(), a.backups(), a.backupTargets(), a.disks(), a.ceph()}
}

func (a *App) watchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "watch [KIND…]", Short: "Watch changes until interrupted",
		Long: "KIND is the kind of an object, e.g. Instance; default: all. -o json prints one object per line.",
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.completeKinds,
	}
	since := cmd.Flags().Int64("since", 0, "start after this revision; 0: start with all existing objects")
	count := cmd.Flags().Int("count", 0, "stop after this many changes; 0: never")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var kinds []api.Kind
		for _, arg := range args {
			kinds = append(kinds, a.kindNamed(arg))
		}
		seen := 0
		for e, err := range a.api.Watch(cmd.Context(), *since, kinds...) {
			if err != nil {
				return err
			}
			if err := a.printEvent(e); err != nil {
				return err
			}
			if seen++; seen == *count {
				return nil
			}
		}
		return nil // interrupted, the usual end
	}
	return cmd
}

// kindNamed accepts Instance, instance and gpu-pool.
func (a *App) kindNamed(s string) api.Kind {
	flat := strings.ReplaceAll(s, "-", "")
	for _, k := range a.kinds() {
		if strings.EqualFold(flat, string(k.name())) {
			return k.name()
		}
	}
	return api.Kind(s) // the server reports that it does not exist
}

func (a *App) printEvent(e api.Event) error {
	if a.flags.output != "table" {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "%s\n", raw)
		return err
	}
	if e.Type == api.EventSync {
		_, err := fmt.Fprintf(a.Out, "%8d  --- end of existing objects; changes follow\n", e.Revision)
		return err
	}
	var status struct {
		Phase string `json:"phase"`
		Step  string `json:"step"`
	}
	if len(e.Object.Status) > 0 {
		if err := json.Unmarshal(e.Object.Status, &status); err != nil {
			return fmt.Errorf("decode status of %s: %w", e.Object.Meta.ID, err)
		}
	}
	line := fmt.Sprintf("%8d  %-6s  %s %s  %s %s", e.Object.Meta.Revision, e.Type, e.Object.Kind, e.Object.Meta.Name, status.Phase, status.Step)
	_, err := fmt.Fprintln(a.Out, strings.TrimRight(printable(line), " "))
	return err
}
