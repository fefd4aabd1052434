package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// planImage chooses the node that imports an image with a URL.
func planImage(s *State, img api.Image, now time.Time) []api.Command {
	if img.Spec.URL == "" || img.Meta.DeletedAt != nil || img.Status.Phase == api.ImageReady {
		return nil
	}
	if id := img.Assignment.Node; id != "" && !lost(s, id) {
		return nil
	}
	var best api.Node
	for _, n := range objects.Sorted(s.Nodes) {
		if alive(s, n, now) == "" && (best.Meta.ID == "" || n.Status.StorageFreeBytes > best.Status.StorageFreeBytes) {
			best = n
		}
	}
	if best.Meta.ID == "" || string(img.Assignment.Node) == best.Meta.ID {
		return nil
	}
	return assign(api.KindImage, img.Meta, api.ImageAssignment{Node: api.NodeID(best.Meta.ID)})
}
