package metadata

import (
	"cmp"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// share chooses the networks that a node serves, at most the given number, in
// the order in which they are started: every project's first one, then every
// project's second one, and so on. So the networks left out belong to the
// projects with the most networks on this node, and the networks of one
// project do not delay another's. Within a project those that are running come
// first, so that a network that is added never displaces a running one.
func share(networks []Network, running func(api.NetworkID) bool, most int) (answered, left []Network) {
	all := slices.Clone(networks)
	slices.SortFunc(all, func(a, b Network) int {
		first := func(n Network) int {
			if running(n.ID) {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Project, b.Project), first(a)-first(b), cmp.Compare(a.ID, b.ID))
	})
	rank, next := map[api.NetworkID]int{}, map[api.ProjectID]int{}
	for _, n := range all {
		rank[n.ID] = next[n.Project]
		next[n.Project]++
	}
	slices.SortStableFunc(all, func(a, b Network) int { return rank[a.ID] - rank[b.ID] })
	most = min(most, len(all))
	return all[:most], all[most:]
}
