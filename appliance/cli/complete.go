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

// completeFlag completes the value of a flag that names an object of the kind.
func (k *kind[T]) completeFlag(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return k.app.namesWithPrefix(cmd, k, begun, nil), cobra.ShellCompDirectiveNoFileComp
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

// otherFlags maps flags that name an object by another word than that of its kind's
// command to the kind; empty for flags that have the word of a kind but name something
// else.
var otherFlags = map[string]api.Kind{
	"pool": api.KindGPUPool, "target": api.KindBackupTarget, "reseller": api.KindOrganization,
	"of": api.KindProject, "changed": api.KindPriceBook, "cdrom": api.KindImage, "medium": api.KindImage,
	"user":    "", // of a guest or of a mail server
	"invoice": "", // by number
	"ssh-key": "", // also a file
}

// flagKinds maps flags that name an object to its kind: each kind's flag has the word of
// its command.
func (a *App) flagKinds() map[string]anyKind {
	all, byName := map[string]anyKind{}, map[api.Kind]anyKind{}
	for _, k := range a.kinds() {
		all[k.word()], byName[k.name()] = k, k
	}
	for flag, kind := range otherFlags {
		if all[flag] = byName[kind]; kind == "" {
			delete(all, flag)
		}
	}
	return all
}

// flagWords maps flags to the values that they accept.
var flagWords = map[string][]string{
	"output": {"table", "json", "yaml"}, "format": {api.FormatQCOW2, api.FormatRaw, api.FormatISO}, "mode": {api.ModeTimeSliced},
	"role":     {string(api.RoleBilling), string(api.RoleViewer), string(api.RoleMember), string(api.RoleAdmin), string(api.RoleReseller), string(api.RoleOperator)},
	"protocol": {string(api.ProtocolTCP), string(api.ProtocolUDP)}, "storage-pool": {api.PoolCeph, "ceph-hdd", "ceph-ssd", "ceph-nvme", api.PoolShared, api.PoolLocal},
	"failure-domain": {string(api.DomainHost), string(api.DomainOSD)},
}

// completeFlags registers completions of flag values on cmd and all its subcommands.
func (a *App) completeFlags(cmd *cobra.Command) { a.completeFlagsOf(cmd, a.flagKinds()) }

func (a *App) completeFlagsOf(cmd *cobra.Command, kinds map[string]anyKind) {
	for name, k := range kinds {
		if cmd.Flag(name) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(name, k.completeFlag) // fails if it is registered already, as for an inherited flag
	}
	for name, words := range flagWords {
		if cmd.Flag(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, c := range cmd.Commands() {
		a.completeFlagsOf(c, kinds)
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
