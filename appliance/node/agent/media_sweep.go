package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// mediumUnused is how long a medium stays on a node after its last use: longer than a
// migration may take to fetch one (fetchTime), and long enough to insert it again.
const mediumUnused = 2 * time.Hour

// mediaSweeper deletes the media that were fetched for this node's instances and are not
// used any more. Their image stays in another place, from which it can be fetched again.
type mediaSweeper struct {
	*core
	unused map[api.ImageID]time.Time // since when, as this process has seen it
}

// sweep deletes media that have been unused for mediumUnused.
func (s *mediaSweeper) sweep(ctx context.Context) error {
	var errs []error
	idle := map[api.ImageID]time.Time{}
	for name, p := range s.pools.inOrder() {
		if s.pools.shared(name) {
			continue
		}
		images, err := p.Images(ctx)
		errs = append(errs, wrap(err, "list the images of pool %s", name))
		for _, have := range images {
			img, ok := get(s.cache, s.cache.images, string(have.ID))
			if !ok || img.Spec.Format != api.FormatISO || img.Meta.DeletedAt != nil || s.assigned(have.ID) {
				continue
			}
			since, seen := s.unused[have.ID]
			if !seen {
				since = s.o.Now()
			}
			idle[have.ID] = since
			if s.o.Now().Sub(since) >= mediumUnused {
				errs = append(errs, s.remove(ctx, name, p, have, img))
			}
		}
	}
	s.unused = idle
	return errors.Join(errs...)
}

// assigned reports whether an instance of this node has the medium in a drive, or a
// machine may be about to arrive with it.
func (s *mediaSweeper) assigned(id api.ImageID) bool {
	for _, in := range all(s.cache, s.cache.instances) {
		if slices.Contains(in.Spec.Drives(), id) {
			return true
		}
	}
	return slices.ContainsFunc(all(s.cache, s.cache.migrations), func(m api.Migration) bool { return !m.Status.Phase.Ended() })
}

// remove deletes the medium from the pool, unless it is the copy that the cluster keeps,
// or a machine has it: a guest may have locked a drive, whose instance has it no more.
func (s *mediaSweeper) remove(ctx context.Context, name string, p sds.Driver, have sds.Image, img api.Image) error {
	kept, err := s.kept(ctx, img)
	if err != nil || !kept {
		return err
	}
	domains, err := s.domain.list(ctx)
	if err != nil {
		return err
	}
	for _, d := range domains {
		drives, err := s.domain.drives(ctx, d.ID)
		if err != nil {
			return err
		}
		for _, v := range drives {
			if v.Medium == have.Path {
				return nil
			}
		}
	}
	if err := p.DeleteImage(ctx, have.ID); err != nil {
		return ignoreInUse(fmt.Errorf("delete medium %s from pool %s: %w", have.ID, name, err))
	}
	s.log.Info("deleted a medium that is unused on this node", "id", have.ID, "pool", name)
	return nil
}

// kept reports whether the image stays in another place if this node deletes its copy
// from a pool of its own: in a shared pool, or on a node that fetches it for the cluster
// (copyToVoter), or that has imported it. Those nodes keep theirs.
func (s *mediaSweeper) kept(ctx context.Context, img api.Image) (bool, error) {
	id := api.ImageID(img.Meta.ID)
	for name, p := range s.pools.inOrder() {
		if !s.pools.shared(name) {
			continue
		}
		_, err := p.Image(ctx, id)
		if err == nil {
			return true, nil
		}
		if api.CodeOf(err) != api.CodeNotFound {
			return false, fmt.Errorf("find image %s in pool %s: %w", id, name, err)
		}
	}
	self, ok := s.cache.self()
	if !ok || self.Assignment.Voter || img.Status.Node == s.o.NodeID {
		return false, nil
	}
	return slices.ContainsFunc(all(s.cache, s.cache.nodes), func(n api.Node) bool {
		other := api.NodeID(n.Meta.ID)
		return other != s.o.NodeID && !s.members.away(other) && slices.Contains(n.Status.Images, id) && (n.Assignment.Voter || img.Status.Node == other)
	}), nil
}
