package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

// completionTime is the maximum time that a shell's user waits for names.
const completionTime = 2 * time.Second

// completion completes a word on the command line.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeNames completes the names of a kind's objects; most is how many arguments the command
// accepts, 0 for any number.
func (k *kind[T]) completeNames(most int) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return k.app.namesWithPrefix(cmd, k, begun, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesWithPrefix returns the objects' names that begin with begun, without those already
// given, or nil when the server does not answer within completionTime.
func (a *App) namesWithPrefix(cmd *cobra.Command, k anyKind, begun string, given []string) []string {
	if a.connect(cmd) != nil || a.api == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var names []string
	for _, m := range k.metas(ctx, k.query()) {
		if strings.HasPrefix(m.Name, begun) && !slices.Contains(given, m.Name) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// flagKinds maps flags that name an object to its kind.
var flagKinds = map[string]api.Kind{
	"organization": api.KindOrganization, "project": api.KindProject, "flavor": api.KindFlavor, "app": api.KindApp, "image": api.KindImage,
	"gpu-pool": api.KindGPUPool, "pool": api.KindGPUPool, "price-book": api.KindPriceBook, "instance": api.KindInstance,
	"network": api.KindNetwork, "security-group": api.KindSecurityGroup, "external-network": api.KindExternalNetwork,
	"floating-ip": api.KindFloatingIP, "volume": api.KindVolume, "snapshot": api.KindSnapshot, "backup": api.KindBackup,
	"target": api.KindBackupTarget, "reseller": api.KindOrganization,
}

// flagWords maps flags to the values that they accept.
var flagWords = map[string][]string{
	"output": {"table", "json", "yaml"}, "format": {api.FormatQCOW2, api.FormatRaw}, "mode": {api.ModeTimeSliced},
	"role":     {string(api.RoleBilling), string(api.RoleViewer), string(api.RoleMember), string(api.RoleAdmin), string(api.RoleReseller), string(api.RoleOperator)},
	"protocol": {string(api.ProtocolTCP), string(api.ProtocolUDP)}, "storage-pool": {api.PoolCeph, "ceph-hdd", "ceph-ssd", "ceph-nvme", api.PoolShared, api.PoolLocal},
	"failure-domain": {string(api.DomainHost), string(api.DomainOSD)},
}

// completeFlags registers completions of flag values on cmd and all its subcommands.
func (a *App) completeFlags(cmd *cobra.Command) {
	for name, kind := range flagKinds {
		if cmd.Flag(name) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(name, func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			for _, k := range a.kinds() {
				if k.name() == kind {
					return a.namesWithPrefix(c, k, begun, nil), cobra.ShellCompDirectiveNoFileComp
				}
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}) // fails if it is registered already, as for an inherited flag
	}
	for name, words := range flagWords {
		if cmd.Flag(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, c := range cmd.Commands() {
		a.completeFlags(c)
	}
}

// completeKinds completes kinds, for watch.
func (a *App) completeKinds(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, k := range a.kinds() {
		out = append(out, string(k.name()))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
