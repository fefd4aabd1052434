package agent

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// Leaks is what lies on the node and belongs to nobody. The agent sweeps such
// things away itself, minutes later: what is listed twice in ten minutes is a
// fault of Basalt's, but for what it keeps for a while (unknown.go).
func (a *Agent) Leaks(ctx context.Context, node api.NodeID) ([]api.Leak, error) {
	if node != a.o.NodeID {
		return nil, api.Errorf(api.CodeUnavailable, "node %s does not answer", node)
	}
	var all []api.Leak
	leak := func(kind api.Kind, id, what string) {
		all = append(all, api.Leak{Kind: string(kind), ID: id, What: what})
	}
	runs, err := a.runs(ctx)
	errs := []error{err}
	sockets, err := os.ReadDir(a.o.RunDir)
	if err != nil && !os.IsNotExist(err) {
		errs = append(errs, err)
	}
	for _, e := range sockets {
		runs[e.Name()] = append(runs[e.Name()], "sockets")
	}
	if a.o.Ports != nil {
		ports, err := a.o.Ports.Plugged(ctx)
		errs = append(errs, err)
		for _, p := range ports {
			if id, ok := api.PortInstance(p); ok {
				runs[string(id)] = append(runs[string(id)], "port "+p)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		gone, _, err := a.notMine(ctx, api.KindInstance, id)
		errs = append(errs, err)
		if gone {
			leak(api.KindInstance, id, strings.Join(runs[id], ", "))
		}
	}
	for name, p := range a.pools.inOrder() {
		if a.pools.shared(name) && !a.members.onDutyFor(name, p) {
			continue // one node speaks for all
		}
		errs = append(errs, a.poolLeaks(ctx, name, p, leak))
	}
	return all, errors.Join(errs...)
}

func (a *Agent) poolLeaks(ctx context.Context, name string, p sds.Driver, leak func(kind api.Kind, id, what string)) error {
	volumes, err := p.Volumes(ctx)
	errs := []error{err}
	for _, v := range volumes {
		gone, o, err := a.notMine(ctx, api.KindVolume, string(v.ID))
		errs = append(errs, err)
		switch {
		case gone && (o == nil || a.unknown.noted(name, api.KindVolume, string(v.ID))):
			leak(api.KindVolume, string(v.ID), a.unknown.leftIn(name, api.KindVolume, string(v.ID)))
		case gone && !a.pools.shared(name):
			leak(api.KindVolume, string(v.ID), "in pool "+name)
		}
	}
	images, err := p.Images(ctx)
	errs = append(errs, err)
	for _, i := range images {
		_, err := a.o.Store.Get(ctx, api.KindImage, string(i.ID))
		switch {
		case api.CodeOf(err) == api.CodeNotFound:
			leak(api.KindImage, string(i.ID), a.unknown.leftIn(name, api.KindImage, string(i.ID)))
		case err != nil:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
