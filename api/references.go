package api

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Target is what a reference points to: an object's ID, its name where references use
// names, or neither to mean any object of the kind.
type Target struct {
	Kind Kind
	ID   string
	Name string
}

// Reference is a reference of an object to another.
type Reference struct {
	Target Target
	Field  string // path of the referring field: "spec.flavor"
	// Needs means that the target must exist, and not be marked deleted, when the
	// reference is added.
	Needs bool
	// Holds means that the target cannot be deleted while the object refers to it.
	Holds bool
	// Held means that the object itself cannot be deleted while the target exists and
	// is not being deleted.
	Held bool
}

// MaxReferences limits the references of one object.
const MaxReferences = 1024

// References returns the references of an object to others, each target once, without
// references to itself. Parts that cannot be decoded have none.
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

// Referred returns References without those to the project and organization of the
// object.
func Referred(o Object) []Reference {
	k := o.Kind.Info()
	if k.references == nil {
		return nil
	}
	r := references{self: o}
	k.references(o, &r)
	return r.all
}

// SameReferences reports whether two states of an object must have the same Referred,
// without decoding them.
func SameReferences(a, b Object) bool {
	k := a.Kind.Info()
	return k.references == nil || (a.Meta.DeletedAt == nil) == (b.Meta.DeletedAt == nil) && string(a.Spec) == string(b.Spec) &&
		(!k.partsRefer || string(a.Assignment) == string(b.Assignment) && string(a.Status) == string(b.Status))
}

// Targets returns the targets by which an object can be referred to: none if it is
// marked deleted. A target that an object loses is checked like its deletion.
func Targets(o *Object) []Target {
	if o == nil || o.Meta.DeletedAt != nil {
		return nil
	}
	all := []Target{{Kind: o.Kind, ID: o.Meta.ID}}
	switch o.Kind {
	case KindGPUPool:
		all = append(all, Target{Kind: o.Kind, Name: o.Meta.Name})
	case KindCephCluster: // a disabled cluster counts as absent
		if saysOf[struct{ Enabled bool }](o.Spec).Enabled {
			all = append(all, Target{Kind: o.Kind})
		}
	}
	return all
}

// references collects the references of an object.
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

// holds adds a reference that lasts as long as the object exists.
func (r *references) holds(field string, kind Kind, id string) {
	if id != "" {
		r.add(Reference{Target: Target{Kind: kind, ID: id}, Field: field, Needs: true, Holds: true})
	}
}

// wants adds a reference that lasts until the object is being deleted.
func (r *references) wants(field string, kind Kind, id string) {
	if r.self.Meta.DeletedAt == nil {
		r.holds(field, kind, id)
	}
}

// names adds a reference whose target must exist when it is added, but may be deleted
// later.
func (r *references) names(field string, kind Kind, id string) {
	if id != "" {
		r.add(Reference{Target: Target{Kind: kind, ID: id}, Field: field, Needs: true})
	}
}

// saysOf decodes some fields of a spec, assignment or status; if it is invalid, the
// fields that were decoded up to the error.
func saysOf[T any](raw json.RawMessage) (t T) {
	_ = json.Unmarshal(raw, &t)
	return t
}

func ofInstance(o Object, r *references) {
	s := saysOf[struct {
		Flavor, Image string
		Rescue        string
		Media         []string
		Vgpu          *struct{ Pool string }
		Networks      []struct {
			Network        string
			SecurityGroups []string
		}
	}](o.Spec)
	r.holds("spec.flavor", KindFlavor, s.Flavor)
	r.holds("spec.image", KindImage, s.Image)
	for _, id := range s.Media {
		r.holds("spec.media", KindImage, id)
	}
	r.holds("spec.rescue", KindImage, s.Rescue)
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

// pool adds a reference to a pool by name. The default pool need not exist.
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
	r.holds("spec.snapshot", KindSnapshot, s.Snapshot) // a clone shares the snapshot's blocks, even while the clone is being deleted
	if s.Rollback != nil && status.Rollbacks < s.Rollback.Count {
		r.holds("spec.rollback.snapshot", KindSnapshot, s.Rollback.Snapshot)
	}
	if status.Phase != VolumeReady { // only while the volume is created
		r.wants("spec.backup", KindBackup, s.Backup)
	}
	if s.Instance != "" { // a root volume is deleted with its instance; a data volume must be detached first
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
	r.names("spec.volume", KindVolume, s.Volume) // a backup is kept when its volume is deleted
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
	s := saysOf[struct{ Instance, Volume, Target string }](o.Spec)
	r.names("spec.instance", KindInstance, s.Instance)
	r.names("spec.volume", KindVolume, s.Volume)
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

// ofGroup adds the members, and the projects of the roles. A user that is deleted leaves
// its groups in the same batch; roles in a deleted project have no effect.
func ofGroup(o Object, r *references) {
	s := saysOf[struct {
		Members          []string
		Grants           []struct{ Project string }
		IdentityProvider string
	}](o.Spec)
	for _, m := range s.Members {
		r.names("spec.members", KindUser, m)
	}
	for _, g := range s.Grants {
		r.names("spec.grants", KindProject, g.Project)
	}
	r.names("spec.identityProvider", KindIdentityProvider, s.IdentityProvider)
}

// ofService adds the service's organization and project, until its termination is
// requested.
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

// ofUser adds the user; its sessions, identities and SSH keys are deleted with it.
func ofUser(o Object, r *references) {
	r.names("spec.user", KindUser, saysOf[struct{ User string }](o.Spec).User)
}

// can reports whether an object with such an ID or name can exist; others would not be
// valid keys.
func (t Target) can() bool {
	return len(t.ID)+len(t.Name) <= maxTarget && !strings.Contains(t.ID+t.Name, "\x00")
}

// maxTarget limits an ID or a name, in bytes.
const maxTarget = 512
