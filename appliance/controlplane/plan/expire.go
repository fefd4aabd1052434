package plan

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// overdue reports whether an instance has waited for its first node as long as its spec
// allows.
func overdue(in api.Instance, now time.Time) bool {
	return isNew(in) && in.Spec.QueueUntil != nil && !now.Before(*in.Spec.QueueUntil)
}

// cancel deletes an instance that never had a node, as its user would: its data volumes
// and floating IPs are detached, and it is removed from load balancers. Its root volume
// is deleted with it.
func cancel(s *State, in api.Instance) (cmds []api.Command) {
	put := func(kind api.Kind, m api.Meta, spec any) {
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: kind, ID: m.ID, Expect: m.Revision, Labels: m.Labels, Data: api.Encode(spec)})
	}
	id := api.InstanceID(in.Meta.ID)
	for _, v := range objects.Sorted(s.Volumes) {
		if v.Spec.Instance == id && !v.Spec.Root && v.Meta.DeletedAt == nil {
			v.Spec.Instance = ""
			put(api.KindVolume, v.Meta, v.Spec)
		}
	}
	for _, f := range objects.Sorted(s.FloatingIPs) {
		if f.Spec.Instance == id {
			f.Spec.Instance, f.Spec.Network = "", ""
			put(api.KindFloatingIP, f.Meta, f.Spec)
		}
	}
	for _, l := range objects.Sorted(s.LoadBalancers) {
		left := slices.DeleteFunc(slices.Clone(l.Spec.Backends), func(b api.LoadBalancerBackend) bool { return b.Instance == id })
		if len(left) != len(l.Spec.Backends) {
			l.Spec.Backends = left
			put(api.KindLoadBalancer, l.Meta, l.Spec)
		}
	}
	return append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: in.Meta.ID, Expect: in.Meta.Revision,
		Event: queueEvent(api.EventQueueExpired, in, in.Assignment.QueuedAt)})
}

// queueEvent returns the event about the end of an instance's wait; since is nil if it
// never was in the queue.
func queueEvent(what string, in api.Instance, since *time.Time) *api.CommandEvent {
	m := in.Meta
	e := api.QueueEvent{QueuedAt: m.CreatedAt, QueueUntil: in.Spec.QueueUntil,
		EventObject: api.EventObject{Kind: api.KindInstance, ID: m.ID, Name: m.Name, Organization: m.Organization, Project: m.Project, Revision: m.Revision}}
	if since != nil {
		e.QueuedAt = *since
	}
	return &api.CommandEvent{Type: what, Data: api.Encode(e)}
}
