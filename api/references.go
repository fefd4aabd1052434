package api

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Target is under what an object is referred to: its id, its name where
// references have names, or neither, for any object of the kind.
type Target struct {
	Kind Kind
	ID   string
	Name string
}

// Reference is one that an object has.
type Reference struct {
	Target Target
	Field  string // of the object, as a path: "spec.flavor"
	// Needs: the target must be there, and not be on its way out, when the object
	// begins to refer to it.
	Needs bool
	// Holds: the target cannot be deleted while the object refers to it.
	Holds bool
	// Held: the object itself cannot be deleted while the target is there and is
	// not being deleted.
	Held bool
}

// MaxReferences of one object.
const MaxReferences = 1024

// References of an object to others, each target once, without those to itself.
// What is broken in it refers to nothing.
func References(o Object) []Reference {
	r := Referred(o)
	for _, container := range o.Kind.Info().Keeps {
		id, field := o.Meta.Project, "meta.project"
		if container == KindOrganization {
			id, field = o.Meta.Organization, "meta.organization"
		}
		if id != "" {
			r = append(r, Reference{Target: Target{Kind: container, ID: id}, Field: field, Needs: true, Holds: true})
		}
	}
	return r
}

// Referred is References without the project and organization that it is in.
func Referred(o Object) []Reference {
	k := o.Kind.Info()
	if k.references == nil {
		return nil
	}
	r := references{self: o}
	k.references(o, &r)
	return r.all
}

// SameReferences says, without reading them, that two states of an object have
// the same Referred.
func SameReferences(a, b Object) bool {
	k := a.Kind.Info()
	return k.references == nil || (a.Meta.DeletedAt == nil) == (b.Meta.DeletedAt == nil) && string(a.Spec) == string(b.Spec) &&
		(!k.partsRefer || string(a.Assignment) == string(b.Assignment) && string(a.Status) == string(b.Status))
}

// Targets are under what an object can be referred to: none while it is on its
// way out. What it is no longer is checked as its deletion is.
func Targets(o *Object) []Target {
	if o == nil || o.Meta.DeletedAt != nil {
		return nil
	}
	all := []Target{{Kind: o.Kind, ID: o.Meta.ID}}
	switch o.Kind {
	case KindGPUPool:
		all = append(all, Target{Kind: o.Kind, Name: o.Meta.Name})
	case KindCephCluster: // one that is switched off is as if it was not there
		if saysOf[struct{ Enabled bool }](o.Spec).Enabled {
			all = append(all, Target{Kind: o.Kind})
		}
	}
	return all
}

// references are being collected.
type references struct {
	self Object
	all  []Reference
	seen map[Target]int
}

func (r *references) add(x Reference) {
	t := x.Target
	if t.Kind == r.self.Kind && t.ID == r.self.Meta.ID {
		return
	}
	if i, ok := r.seen[t]; ok {
		had := &r.all[i]
		had.Needs, had.Holds, had.Held = had.Needs || x.Needs, had.Holds || x.Holds, had.Held || x.Held
		return
	}
	if r.seen == nil {
		r.seen = map[Target]int{}
	}
	r.seen[t] = len(r.all)
	r.all = append(r.all, x)
}

// holds: as long as the object is there.
func (r *references) holds(field string, kind Kind, id string) {
	if id != "" {
		r.add(Reference{Target: Target{Kind: kind, ID: id}, Field: field, Needs: true, Holds: true})
	}
}

// wants: until the object is being deleted.
func (r *references) wants(field string, kind Kind, id string) {
	if r.self.Meta.DeletedAt == nil {
		r.holds(field, kind, id)
	}
}

// names: there was one when it was said; it may go.
func (r *references) names(field string, kind Kind, id string) {
	if id != "" {
		r.add(Reference{Target: Target{Kind: kind, ID: id}, Field: field, Needs: true})
	}
}

// saysOf reads some fields of a spec, assignment or status; of one that is broken,
// those that were read.
func saysOf[T any](raw json.RawMessage) (t T) {
	_ = json.Unmarshal(raw, &t)
	return t
}

func ofInstance(o Object, r *references) {
	s := saysOf[struct {
		Flavor, Image string
		Vgpu          *struct{ Pool string }
		Networks      []struct {
			Network        string
			SecurityGroups []string
		}
	}](o.Spec)
	r.holds("spec.flavor", KindFlavor, s.Flavor)
	r.holds("spec.image", KindImage, s.Image)
	if s.Vgpu != nil {
		r.pool("spec.vgpu.pool", s.Vgpu.Pool)
	}
	for _, n := range s.Networks {
		r.holds("spec.networks", KindNetwork, n.Network)
		for _, g := range n.SecurityGroups {
			r.holds("spec.networks", KindSecurityGroup, g)
		}
	}
}

// pool by name. The one that is the default need not be there.
func (r *references) pool(field, name string) {
	if name != "" {
		r.add(Reference{Target: Target{Kind: KindGPUPool, Name: name}, Field: field, Needs: name != DefaultPool, Holds: true})
	}
}

func ofVolume(o Object, r *references) {
	s := saysOf[struct {
		Image, Snapshot, Backup, Instance string
		Rollback                          *struct {
			Snapshot string
			Count    int64
		}
	}](o.Spec)
	status := saysOf[struct {
		Phase     VolumePhase
		Rollbacks int64
	}](o.Status)
	r.holds("spec.image", KindImage, s.Image)
	r.holds("spec.snapshot", KindSnapshot, s.Snapshot) // a clone shares its blocks, also while it is being deleted
	if s.Rollback != nil && status.Rollbacks < s.Rollback.Count {
		r.holds("spec.rollback.snapshot", KindSnapshot, s.Rollback.Snapshot)
	}
	if status.Phase != VolumeReady { // until it is made
		r.wants("spec.backup", KindBackup, s.Backup)
	}
	if s.Instance != "" { // a root volume goes with its instance; a data volume is taken off first
		r.add(Reference{Target: Target{Kind: KindInstance, ID: s.Instance}, Field: "spec.instance", Needs: true, Held: true})
	}
	if saysOf[struct{ Pool string }](o.Assignment).Pool == PoolCeph {
		r.add(Reference{Target: Target{Kind: KindCephCluster}, Holds: true})
	}
}

func ofSnapshot(o Object, r *references) {
	r.wants("spec.volume", KindVolume, saysOf[struct{ Volume string }](o.Spec).Volume)
}

func ofBackup(o Object, r *references) {
	s := saysOf[struct{ Target, Volume string }](o.Spec)
	r.holds("spec.target", KindBackupTarget, s.Target)
	r.names("spec.volume", KindVolume, s.Volume) // it is there for when the volume is not
}

func ofLoadBalancer(o Object, r *references) {
	s := saysOf[struct {
		Network, FloatingIP string
		Backends            []struct{ Instance string }
	}](o.Spec)
	r.wants("spec.network", KindNetwork, s.Network)
	r.wants("spec.floatingIP", KindFloatingIP, s.FloatingIP)
	for _, b := range s.Backends {
		r.names("spec.backends", KindInstance, b.Instance)
	}
}

func ofFloatingIP(o Object, r *references) {
	s := saysOf[struct{ ExternalNetwork, Network, Instance string }](o.Spec)
	r.wants("spec.externalNetwork", KindExternalNetwork, s.ExternalNetwork)
	r.wants("spec.network", KindNetwork, s.Network)
	r.names("spec.instance", KindInstance, s.Instance)
}

func ofSecurityGroup(o Object, r *references) {
	s := saysOf[struct{ Rules []struct{ Group string } }](o.Spec)
	for _, rule := range s.Rules {
		r.holds("spec.rules", KindSecurityGroup, rule.Group)
	}
}

func ofMigration(o Object, r *references) {
	s := saysOf[struct{ Instance, Target string }](o.Spec)
	r.names("spec.instance", KindInstance, s.Instance)
	r.names("spec.target", KindNode, s.Target)
}

func ofGPU(o Object, r *references) {
	pool := saysOf[struct{ Pool string }](o.Spec).Pool
	if pool == "" {
		pool = DefaultPool
	}
	r.pool("spec.pool", pool)
}

func ofDisk(o Object, r *references) {
	if saysOf[struct{ Use string }](o.Spec).Use == string(DiskCeph) {
		r.add(Reference{Target: Target{Kind: KindCephCluster}, Holds: true})
	}
}

func ofOrganization(o Object, r *references) {
	s := saysOf[struct {
		PriceBook string
		Offers    []string
	}](o.Spec)
	r.holds("spec.priceBook", KindPriceBook, s.PriceBook)
	for i, book := range s.Offers {
		r.holds(fmt.Sprintf("spec.offers[%d]", i), KindPriceBook, book)
	}
}

func ofBudget(o Object, r *references) {
	r.names("spec.project", KindProject, saysOf[struct{ Project string }](o.Spec).Project)
}

func ofIdentityProvider(o Object, r *references) {
	r.names("spec.organization", KindOrganization, saysOf[struct{ Organization string }](o.Spec).Organization)
}

// ofService: its organization and project, until its end was asked for.
func ofService(o Object, r *references) {
	s := saysOf[struct {
		Organization, Project string
		TerminatedAt          *string
	}](o.Spec)
	if s.TerminatedAt == nil {
		r.holds("spec.organization", KindOrganization, s.Organization)
		r.holds("spec.project", KindProject, s.Project)
	}
}

// ofUser: sessions, identities and SSH keys of a user are deleted with it.
func ofUser(o Object, r *references) {
	r.names("spec.user", KindUser, saysOf[struct{ User string }](o.Spec).User)
}

// can reports whether there can be an object of such an id or name: others would be
// no keys.
func (t Target) can() bool {
	return len(t.ID)+len(t.Name) <= maxTarget && !strings.Contains(t.ID+t.Name, "\x00")
}

// maxTarget is the size of an id or a name in bytes.
const maxTarget = 512
