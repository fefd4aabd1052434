package cli

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

const interopAbout = `Programs linked with NVIDIA's own runtime library ask the driver to prove that it
is NVIDIA's, and stop if it does not answer. With interop enabled, Basalt's guest
library answers. Interop is disabled until an operator enables it for GPU pools;
the operator must check that the vendor's license allows it. Every change is
recorded in the audit log. All other programs work without it
(docs/vendor-interop.md).`

// interopCommand shows and changes in which pools guests may answer the authenticity query of
// the vendor's runtime.
func (a *App) interopCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "interop", Short: "Support for programs linked with NVIDIA's own runtime library", Long: interopAbout}
	var pools []string
	yes, no := true, false
	cmd.PersistentFlags().StringSliceVar(&pools, "pool", nil, "GPU pool, name or ID; repeatable (default: all)")
	cmd.AddCommand(
		a.interopVerb("status", "Show the pools with interop enabled", &pools, nil),
		a.interopVerb("enable", "Enable interop for programs started from now on", &pools, &yes),
		a.interopVerb("disable", "Disable interop for programs started from now on", &pools, &no))
	return cmd
}

// interopVerb sets interop of the pools, unless on is nil, and prints them.
func (a *App) interopVerb(use, short string, refs *[]string, on *bool) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, k := cmd.Context(), a.pools()
		pools, err := a.poolsNamed(cmd, *refs)
		if err != nil {
			return err
		}
		for i, p := range pools {
			switch {
			case on == nil || p.Spec.Interop == *on:
			case p.Meta.ID == "":
				p.Spec.Interop = *on
				pools[i], err = client.Of[api.GPUPool](a.api).Create(ctx, p)
			default:
				pools[i], err = k.change(ctx, p.Meta.ID, func(p *api.GPUPool) error { p.Spec.Interop = *on; return nil })
			}
			if err != nil {
				return err
			}
		}
		return a.print(pools, func() table {
			t := table{{"POOL", "INTEROP", "ID"}}
			for _, p := range pools {
				t = append(t, []string{p.Meta.Name, onOff(p.Spec.Interop), cmp.Or(p.Meta.ID, "-")})
			}
			return t
		})
	}}
}

// poolsNamed returns the pools in refs, or all sorted by name if refs is empty. It includes the
// default pool even if it is not stored as an object yet.
func (a *App) poolsNamed(cmd *cobra.Command, refs []string) (pools []api.GPUPool, err error) {
	all := []api.GPUPool{}
	for p, err := range client.Of[api.GPUPool](a.api).All(cmd.Context(), client.Query{Limit: 1000}) {
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if !slices.ContainsFunc(all, func(p api.GPUPool) bool { return p.Meta.Name == api.DefaultPool }) {
		all = append(all, api.GPUPool{Kind: api.KindGPUPool, Meta: api.Meta{Name: api.DefaultPool}})
	}
	slices.SortFunc(all, func(a, b api.GPUPool) int { return cmp.Compare(a.Meta.Name, b.Meta.Name) })
	if len(refs) == 0 {
		return all, nil
	}
	for _, ref := range refs {
		i := slices.IndexFunc(all, func(p api.GPUPool) bool { return ref == p.Meta.Name || ref == p.Meta.ID })
		if i < 0 {
			p, err := a.pools().get(cmd.Context(), ref) // returns the not-found error
			if err != nil {
				return nil, err
			}
			pools = append(pools, p)
			continue
		}
		pools = append(pools, all[i])
	}
	return pools, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
