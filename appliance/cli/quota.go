package cli

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

// quotaFlag declares --quota; the function that it returns applies the given values to an
// object's quotas.
func quotaFlag(f *pflag.FlagSet) func(api.Amounts) (api.Amounts, error) {
	given := f.StringArray("quota", nil, "NAME=AMOUNT, e.g. vcpus=16 or memoryBytes=64GiB; NAME=none removes the limit; repeatable")
	return func(quota api.Amounts) (api.Amounts, error) {
		quota = maps.Clone(quota)
		for _, g := range *given {
			name, amount, ok := strings.Cut(g, "=")
			if !ok {
				return nil, usagef("--quota %q is not valid, want NAME=AMOUNT", g)
			}
			if amount == "none" {
				delete(quota, name)
				continue
			}
			n, err := parseSize(amount)
			if err != nil {
				return nil, usagef("--quota %s: %q is not a valid amount, want e.g. 16, 64GiB or none", name, amount)
			}
			if quota == nil {
				quota = api.Amounts{}
			}
			quota[name] = n
		}
		return quota, nil
	}
}

// quotaCommand shows the limits and the current usage of a project or an organization.
func (a *App) quotaCommand(noun string, get func(ctx context.Context, ref string) (api.Quota, error)) *cobra.Command {
	return &cobra.Command{
		Use: "quota NAME", Short: "Show quotas and current usage", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(q, func() table { return quotaTable(q) })
		},
		Example: "basalt " + noun + " quota web\nbasalt " + noun + " set web --quota vcpus=16 --quota memoryBytes=64GiB",
	}
}

func quotaTable(q api.Quota) table {
	names := maps.Clone(q.Uses)
	maps.Copy(names, q.Limits)
	t := table{{"QUOTA", "IN USE", "LIMIT"}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		limit := "none"
		if n, ok := q.Limits[name]; ok {
			limit = formatAmount(name, n)
		}
		t = append(t, []string{name, formatAmount(name, q.Uses[name]), limit})
	}
	return t
}

func formatAmount(quota string, n int64) string {
	if n != 0 && strings.HasSuffix(quota, "Bytes") {
		return formatSize(n)
	}
	return strconv.FormatInt(n, 10)
}
