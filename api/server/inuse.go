package server

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// user is a kind whose objects can keep another from being deleted.
type user struct {
	kind  api.Kind
	query func(o api.Object) api.ListQuery
	uses  func(user, o api.Object) bool
}

func anywhere(api.Object) api.ListQuery { return api.ListQuery{} }
func within(o api.Object) api.ListQuery { return api.ListQuery{Project: o.Meta.ID} }
func owned(o api.Object) api.ListQuery  { return api.ListQuery{Organization: o.Meta.ID} }
func always(_, _ api.Object) bool       { return true }
func siblings(o api.Object) api.ListQuery {
	return api.ListQuery{Project: o.Meta.Project}
}

// alive: what is being deleted uses nothing any more.
func alive(f func(u references, o api.Object) bool) func(u, o api.Object) bool {
	return func(u, o api.Object) bool { return u.Meta.DeletedAt == nil && f(refs(u), o) }
}

// references are fields that refer to others, of any kind's spec.
type references struct {
	Flavor    string   `json:"flavor"`
	Image     string   `json:"image"`
	Instance  string   `json:"instance"`
	Pool      string   `json:"pool"`
	PriceBook string   `json:"priceBook"`
	Offers    []string `json:"offers"`
	Vgpu      *struct {
		Pool string `json:"pool"`
	} `json:"vgpu"`
	Network         string `json:"network"`
	ExternalNetwork string `json:"externalNetwork"`
	FloatingIP      string `json:"floatingIP"`
	Volume          string `json:"volume"`
	Snapshot        string `json:"snapshot"`
	Backup          string `json:"backup"`
	Target          string `json:"target"`
	Use             string `json:"use"`
	Networks        []struct {
		Network        string   `json:"network"`
		SecurityGroups []string `json:"securityGroups"`
	} `json:"networks"`
	Rules []struct {
		Group string `json:"group"`
	} `json:"rules"`
}

// inNetwork says whether an instance has a port in the network.
func (r references) inNetwork(id string) bool {
	for _, n := range r.Networks {
		if n.Network == id {
			return true
		}
	}
	return false
}

// inGroup says whether a port of an instance is in the security group, or a
// rule speaks of it.
func (r references) inGroup(id string) bool {
	for _, n := range r.Networks {
		if slices.Contains(n.SecurityGroups, id) {
			return true
		}
	}
	for _, rule := range r.Rules {
		if rule.Group == id {
			return true
		}
	}
	return false
}

// madeWithProject says whether an object is one of those that a project begins with, and
// which go with it.
func madeWithProject(o api.Object) bool {
	return (o.Kind == api.KindNetwork || o.Kind == api.KindSecurityGroup) && o.Meta.Name == api.DefaultName
}

func refs(o api.Object) references {
	var r references
	_ = json.Unmarshal(o.Spec, &r) // specs are our own; one that is broken refers to nothing
	return r
}

// users of a kind's objects.
var users = map[api.Kind][]user{
	api.KindFlavor: {{api.KindInstance, anywhere, func(u, o api.Object) bool { return refs(u).Flavor == o.Meta.ID }}},
	api.KindImage: {
		{api.KindVolume, anywhere, func(u, o api.Object) bool { return refs(u).Image == o.Meta.ID }},
		{api.KindInstance, anywhere, func(u, o api.Object) bool { return refs(u).Image == o.Meta.ID }},
	},
	api.KindGPUPool: {
		{api.KindInstance, anywhere, func(u, o api.Object) bool { v := refs(u).Vgpu; return v != nil && v.Pool == o.Meta.Name }},
		{api.KindGPU, anywhere, func(u, o api.Object) bool {
			pool := refs(u).Pool
			return pool == o.Meta.Name || pool == "" && o.Meta.Name == api.DefaultPool
		}},
	},
	api.KindPriceBook: {{api.KindOrganization, anywhere, func(u, o api.Object) bool {
		r := refs(u)
		return r.PriceBook == o.Meta.ID || slices.Contains(r.Offers, o.Meta.ID)
	}}},
	api.KindProject: {
		{api.KindInstance, within, always}, {api.KindVolume, within, always}, {api.KindImage, within, always},
		{api.KindAPIKey, within, always},
		{api.KindLoadBalancer, within, always}, {api.KindFloatingIP, within, always},
		{api.KindSnapshot, within, always}, {api.KindBackup, within, always},
		{api.KindNetwork, within, func(u, _ api.Object) bool { return !madeWithProject(u) }},
		{api.KindSecurityGroup, within, func(u, _ api.Object) bool { return !madeWithProject(u) }},
		{api.KindService, anywhere, sold},
	},
	api.KindNetwork: {
		{api.KindInstance, siblings, func(u, o api.Object) bool { return refs(u).inNetwork(o.Meta.ID) }},
		{api.KindLoadBalancer, siblings, alive(func(u references, o api.Object) bool { return u.Network == o.Meta.ID })},
		{api.KindFloatingIP, siblings, alive(func(u references, o api.Object) bool { return u.Network == o.Meta.ID })},
	},
	api.KindSecurityGroup: {
		{api.KindInstance, siblings, func(u, o api.Object) bool { return refs(u).inGroup(o.Meta.ID) }},
		{api.KindSecurityGroup, siblings, func(u, o api.Object) bool { return u.Meta.ID != o.Meta.ID && refs(u).inGroup(o.Meta.ID) }},
	},
	api.KindExternalNetwork: {{api.KindFloatingIP, anywhere, alive(func(u references, o api.Object) bool { return u.ExternalNetwork == o.Meta.ID })}},
	api.KindFloatingIP:      {{api.KindLoadBalancer, siblings, alive(func(u references, o api.Object) bool { return u.FloatingIP == o.Meta.ID })}},
	// A clone shares blocks with its snapshot, also while it is being deleted.
	api.KindSnapshot:     {{api.KindVolume, siblings, func(u, o api.Object) bool { return refs(u).Snapshot == o.Meta.ID || rollsBackTo(u, o) }}},
	api.KindBackup:       {{api.KindVolume, siblings, restores}},
	api.KindBackupTarget: {{api.KindBackup, anywhere, func(u, o api.Object) bool { return refs(u).Target == o.Meta.ID }}},
	api.KindCephCluster: {
		{api.KindVolume, anywhere, inCeph},
		{api.KindDisk, anywhere, func(u, _ api.Object) bool { return refs(u).Use == string(api.DiskCeph) }},
	},
	api.KindOrganization: {
		{api.KindProject, owned, always}, {api.KindInvoice, owned, always}, {api.KindPayment, owned, always}, {api.KindBudget, owned, always}, {api.KindAPIKey, owned, always},
		{api.KindOrganization, owned, always}, {api.KindUser, owned, always}, {api.KindWebhook, owned, always},
		{api.KindService, owned, always}, {api.KindService, anywhere, sold},
	},
	// A root volume goes with its instance; a data volume is taken off first.
	api.KindVolume: {
		{api.KindInstance, siblings, func(u, o api.Object) bool { return refs(o).Instance == u.Meta.ID && u.Meta.DeletedAt == nil }},
		{api.KindSnapshot, siblings, alive(func(u references, o api.Object) bool { return u.Volume == o.Meta.ID })},
	},
}

// rollsBackTo: the volume is on its way to the snapshot.
func rollsBackTo(u, o api.Object) bool {
	v, err := api.Decode[api.Volume](u)
	r := v.Spec.Rollback
	return err == nil && r != nil && string(r.Snapshot) == o.Meta.ID && v.Status.Rollbacks < r.Count
}

// restores: the volume is being made from the backup.
func restores(u, o api.Object) bool {
	v, err := api.Decode[api.Volume](u)
	return err == nil && string(v.Spec.Backup) == o.Meta.ID && v.Status.Phase != api.VolumeReady && v.Meta.DeletedAt == nil
}

// sold: the organization or project is a service's, which has not ended.
func sold(u, o api.Object) bool {
	s, err := api.Decode[api.Service](u)
	return err == nil && s.Status.Phase != api.ServiceTerminated && (string(s.Spec.Organization) == o.Meta.ID || string(s.Spec.Project) == o.Meta.ID)
}

func inCeph(u, _ api.Object) bool {
	v, err := api.Decode[api.Volume](u)
	return err == nil && v.Assignment.Pool == api.PoolCeph
}

// unused refuses what something else uses: CodeInUse.
func (h *handlers) unused(ctx context.Context, o api.Object) error {
	for _, u := range users[o.Kind] {
		q := u.query(o)
		q.Kind = u.kind
		var by *api.Object
		if err := h.each(ctx, q, func(x api.Object) bool {
			if u.uses(x, o) {
				by = &x
			}
			return by == nil
		}); err != nil {
			return err
		}
		if by != nil {
			e := api.Errorf(api.CodeInUse, "%s %s is in use", o.Kind, o.Meta.Name)
			if who(ctx).sees(*by) { // never another tenant's name
				e.Message += " by " + string(by.Kind) + " " + by.Meta.Name
			}
			return e.WithHint("delete or change what uses it first")
		}
	}
	return nil
}
