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

// leaks returns what is stored on the node and belongs to no object. The agent
// removes such things itself minutes later: what is listed twice in ten minutes is
// a bug of Basalt, except for what is kept on purpose (retention.go).
func (s *orphanSweeper) leaks(ctx context.Context, node api.NodeID) ([]api.Leak, error) {
	if node != s.o.NodeID {
		return nil, api.Errorf(api.CodeUnavailable, "node %s is not reachable", node)
	}
	var all []api.Leak
	leak := func(kind api.Kind, id, what string) {
		all = append(all, api.Leak{Kind: string(kind), ID: id, What: what})
	}
	runs, err := s.runs(ctx)
	errs := []error{err}
	sockets, err := os.ReadDir(s.o.RunDir)
	if err != nil && !os.IsNotExist(err) {
		errs = append(errs, err)
	}
	for _, e := range sockets {
		runs[e.Name()] = append(runs[e.Name()], "sockets")
	}
	if s.o.Ports != nil {
		ports, err := s.ports.list(ctx)
		errs = append(errs, err)
		for _, p := range ports {
			if id, ok := api.PortInstance(p); ok {
				runs[string(id)] = append(runs[string(id)], "port "+p)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		gone, _, err := s.notMine(ctx, api.KindInstance, id)
		errs = append(errs, err)
		if gone {
			leak(api.KindInstance, id, strings.Join(runs[id], ", "))
		}
	}
	for name, p := range s.pools.inOrder() {
		if s.pools.shared(name) && !s.members.onDutyFor(name, p) {
			continue // one node reports for all
		}
		errs = append(errs, s.poolLeaks(ctx, name, p, leak))
	}
	return all, errors.Join(errs...)
}

func (s *orphanSweeper) poolLeaks(ctx context.Context, name string, p sds.Driver, leak func(kind api.Kind, id, what string)) error {
	volumes, err := p.Volumes(ctx)
	errs := []error{wrap(err, "list the volumes of pool %s", name)}
	for _, v := range volumes {
		gone, o, err := s.notMine(ctx, api.KindVolume, string(v.ID))
		errs = append(errs, err)
		switch {
		case gone && (o == nil || s.retention.noted(name, api.KindVolume, string(v.ID))):
			leak(api.KindVolume, string(v.ID), s.retention.leftIn(name, api.KindVolume, string(v.ID)))
		case gone && !s.pools.shared(name):
			leak(api.KindVolume, string(v.ID), "in pool "+name)
		}
	}
	images, err := p.Images(ctx)
	errs = append(errs, wrap(err, "list the images of pool %s", name))
	for _, i := range images {
		_, err := s.read(ctx, api.KindImage, string(i.ID))
		switch {
		case api.CodeOf(err) == api.CodeNotFound:
			leak(api.KindImage, string(i.ID), s.retention.leftIn(name, api.KindImage, string(i.ID)))
		case err != nil:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
