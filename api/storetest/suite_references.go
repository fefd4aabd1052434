package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// thing returns a command that puts an object of a kind.
func thing(kind api.Kind, id string, spec any) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: "n" + id, Expect: api.AnyRevision, Data: api.Encode(spec)}
}

func removing(kind api.Kind, id string) api.Command {
	return api.Command{Op: api.OpDelete, Kind: kind, ID: id, Expect: api.AnyRevision}
}

func forgetting(kind api.Kind, id string) api.Command {
	return api.Command{Op: api.OpForget, Kind: kind, ID: id, Expect: api.AnyRevision, Finalizer: "x"}
}

func held(c api.Command) api.Command {
	c.Finalizers = []string{"x"}
	return c
}

// strict applies a batch in the way of an API server.
func (t *tester) strict(cmds ...api.Command) error {
	_, err := t.s.Apply(t.ctx, api.Batch{At: at(1), Strict: true, Commands: cmds})
	return err
}

func (t *tester) allowed(cmds ...api.Command) {
	t.Helper()
	if err := t.strict(cmds...); err != nil {
		t.Fatalf("apply %v: %v", cmds, err)
	}
}

// inUse checks that the batch is refused because of by, and changes nothing.
func (t *tester) inUse(by api.ObjectRef, cmds ...api.Command) {
	t.Helper()
	before := t.s.Revision()
	err := t.strict(cmds...)
	t.wantCode(api.CodeInUse, err)
	var e *api.Error
	if !errors.As(err, &e) || e.By == nil || *e.By != by || !strings.Contains(e.Error(), by.ID) {
		t.Errorf("batch was refused because of %v, want %v: %v", e.By, by, err)
	}
	if t.s.Revision() != before {
		t.Errorf("revision after a refused batch = %d, want %d", t.s.Revision(), before)
	}
}

// missing checks that the batch is refused because of the target of the field.
func (t *tester) missing(field string, cmds ...api.Command) {
	t.Helper()
	err := t.strict(cmds...)
	t.wantCode(api.CodeNotFound, err)
	var e *api.Error
	if !errors.As(err, &e) || e.Field != field {
		t.Errorf("batch was refused at %q, want %q: %v", e.Field, field, err)
	}
}

func testReferences(t *tester) {
	image, flavor := thing(api.KindImage, "img-1", api.ImageSpec{}), thing(api.KindFlavor, "flv-1", api.FlavorSpec{})
	instance := held(thing(api.KindInstance, "ins-1", api.InstanceSpec{Flavor: "flv-1", Image: "img-1"}))
	ins := api.ObjectRef{Kind: api.KindInstance, ID: "ins-1"}

	t.missing("spec.flavor", instance)
	t.allowed(held(image), flavor)
	t.allowed(instance)
	t.inUse(ins, removing(api.KindFlavor, "flv-1"))
	t.inUse(ins, removing(api.KindImage, "img-1"))
	// A change of the spec releases a reference; a rename and a report do not.
	other := instance
	other.Data = api.Encode(api.InstanceSpec{Flavor: "flv-1"})
	t.allowed(other)
	t.allowed(removing(api.KindImage, "img-1"))
	t.missing("spec.image", instance) // the image is being deleted
	t.allowed(forgetting(api.KindImage, "img-1"))
	t.missing("spec.image", instance)
	other.Name = "renamed"
	t.allowed(other)
	t.must(2, api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision, Data: api.Encode(api.InstanceStatus{Phase: "Running"})})
	t.inUse(ins, removing(api.KindFlavor, "flv-1"))
	// The reference lasts until the object is removed.
	t.allowed(removing(api.KindInstance, "ins-1"))
	t.inUse(ins, removing(api.KindFlavor, "flv-1"))
	t.allowed(forgetting(api.KindInstance, "ins-1"))
	t.allowed(removing(api.KindFlavor, "flv-1"))

	// A batch that is not strict may refer to a missing object. That blocks nothing
	// later, and an object created with that ID is held.
	t.must(3, instance)
	other = instance
	other.Name = "renamed"
	t.allowed(other)
	t.must(4, flavor)
	t.inUse(ins, removing(api.KindFlavor, "flv-1"))
	// A deletion with cascade succeeds despite references.
	cascade := removing(api.KindFlavor, "flv-1")
	cascade.Cascade = true
	t.allowed(cascade)
	t.gone(api.KindFlavor, "flv-1")
}

func testReferencesOfABatch(t *tester) {
	project, organization := thing(api.KindProject, "prj-1", api.ProjectSpec{}), thing(api.KindOrganization, "org-1", api.OrganizationSpec{})
	project.Organization = "org-1"
	inProject := func(c api.Command) api.Command {
		c.Organization, c.Project = "org-1", "prj-1"
		return c
	}
	network := inProject(thing(api.KindNetwork, "net-1", api.NetworkSpec{}))
	t.missing("meta.project", organization, network)
	t.missing("meta.organization", project)
	// The order within a batch does not matter.
	t.allowed(network, project, organization)
	t.inUse(api.ObjectRef{Kind: api.KindNetwork, ID: "net-1"}, removing(api.KindProject, "prj-1"))
	t.inUse(api.ObjectRef{Kind: api.KindProject, ID: "prj-1"}, removing(api.KindOrganization, "org-1"))
	t.inUse(api.ObjectRef{Kind: api.KindNetwork, ID: "net-2"}, removing(api.KindProject, "prj-1"), removing(api.KindNetwork, "net-1"),
		inProject(thing(api.KindNetwork, "net-2", api.NetworkSpec{})))
	t.allowed(removing(api.KindProject, "prj-1"), removing(api.KindNetwork, "net-1"))
	t.allowed(removing(api.KindOrganization, "org-1"))

	// References can be added and released in one batch, even in a cycle.
	group := func(id string, to api.SecurityGroupID) api.Command {
		return thing(api.KindSecurityGroup, id, api.SecurityGroupSpec{Rules: []api.SecurityRule{{Group: to}}})
	}
	t.allowed(group("sg-1", "sg-2"), group("sg-2", "sg-1"), group("sg-3", "sg-3"))
	t.inUse(api.ObjectRef{Kind: api.KindSecurityGroup, ID: "sg-2"}, removing(api.KindSecurityGroup, "sg-1"))
	t.inUse(api.ObjectRef{Kind: api.KindSecurityGroup, ID: "sg-2"}, group("sg-1", ""), removing(api.KindSecurityGroup, "sg-1"))
	t.inUse(api.ObjectRef{Kind: api.KindSecurityGroup, ID: "sg-4"}, group("sg-4", "sg-3"), removing(api.KindSecurityGroup, "sg-3"))
	t.allowed(removing(api.KindSecurityGroup, "sg-1"), removing(api.KindSecurityGroup, "sg-2"))
	t.allowed(removing(api.KindSecurityGroup, "sg-3"))
}

func testReferencesOfKinds(t *tester) {
	// References by name, and a default that need not exist.
	vgpu := func(pool string) api.Command {
		return thing(api.KindInstance, "ins-1", api.InstanceSpec{Vgpu: &api.VGPUSpec{Pool: pool}})
	}
	t.allowed(vgpu(api.DefaultPool))
	t.missing("spec.vgpu.pool", vgpu("npool-1"))
	t.allowed(thing(api.KindGPUPool, "pool-1", api.GPUPoolSpec{}))
	t.allowed(vgpu("npool-1"))
	ins := api.ObjectRef{Kind: api.KindInstance, ID: "ins-1"}
	t.inUse(ins, removing(api.KindGPUPool, "pool-1"))
	renamed := thing(api.KindGPUPool, "pool-1", api.GPUPoolSpec{})
	renamed.Name = "other"
	t.inUse(ins, renamed)

	// A volume belongs to its instance until it is detached.
	volume := func(s api.VolumeSpec) api.Command { return held(thing(api.KindVolume, "vol-1", s)) }
	t.missing("spec.instance", volume(api.VolumeSpec{Instance: "ins-9"}))
	t.allowed(volume(api.VolumeSpec{Instance: "ins-1"}))
	t.inUse(ins, removing(api.KindVolume, "vol-1"))
	t.allowed(volume(api.VolumeSpec{}), removing(api.KindVolume, "vol-1"))
	t.allowed(forgetting(api.KindVolume, "vol-1"))
	t.allowed(volume(api.VolumeSpec{Instance: "ins-1"}))
	t.allowed(removing(api.KindInstance, "ins-1"))
	t.allowed(removing(api.KindVolume, "vol-1"))
	t.missing("spec.volume", thing(api.KindSnapshot, "snap-1", api.SnapshotSpec{Volume: "vol-1"}))
	t.allowed(forgetting(api.KindVolume, "vol-1"))

	// A snapshot keeps its volume until it is being deleted; a volume keeps the
	// snapshot that it is rolled back to until that is done, and its backup while it is
	// created from it.
	t.allowed(volume(api.VolumeSpec{}), held(thing(api.KindSnapshot, "snap-1", api.SnapshotSpec{Volume: "vol-1"})),
		thing(api.KindBackupTarget, "bkt-1", api.BackupTargetSpec{}), thing(api.KindBackup, "bkp-1", api.BackupSpec{Target: "bkt-1", Volume: "vol-1"}))
	vol := api.ObjectRef{Kind: api.KindVolume, ID: "vol-1"}
	t.inUse(api.ObjectRef{Kind: api.KindSnapshot, ID: "snap-1"}, removing(api.KindVolume, "vol-1"))
	t.inUse(api.ObjectRef{Kind: api.KindBackup, ID: "bkp-1"}, removing(api.KindBackupTarget, "bkt-1"))
	back := api.VolumeSpec{Backup: "bkp-1", Rollback: &api.VolumeRollback{Snapshot: "snap-1", Count: 2}}
	report := func(s api.VolumeStatus) api.Command {
		return api.Command{Op: api.OpReport, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision, Data: api.Encode(s)}
	}
	t.allowed(volume(back))
	t.must(2, report(api.VolumeStatus{Rollbacks: 1, Phase: api.VolumeCreating}))
	t.inUse(vol, removing(api.KindSnapshot, "snap-1"))
	t.inUse(vol, removing(api.KindBackup, "bkp-1"))
	t.must(3, report(api.VolumeStatus{Rollbacks: 2, Phase: api.VolumeReady}))
	t.allowed(removing(api.KindSnapshot, "snap-1"))
	t.allowed(removing(api.KindBackup, "bkp-1"))
	t.allowed(removing(api.KindVolume, "vol-1"))

	// Ceph can be disabled only when nothing uses it.
	ceph := func(on bool) api.Command {
		return thing(api.KindCephCluster, "ceph-1", api.CephClusterSpec{Enabled: on})
	}
	t.allowed(ceph(true), thing(api.KindDisk, "disk-1", api.DiskSpec{Use: api.DiskCeph}))
	t.inUse(api.ObjectRef{Kind: api.KindDisk, ID: "disk-1"}, ceph(false))
	t.inUse(api.ObjectRef{Kind: api.KindDisk, ID: "disk-1"}, removing(api.KindCephCluster, "ceph-1"))
	t.must(4, api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Pool: api.PoolCeph})})
	t.inUse(vol, ceph(false), thing(api.KindDisk, "disk-1", api.DiskSpec{Use: api.DiskUnused}))
	t.allowed(forgetting(api.KindVolume, "vol-1"))
	t.allowed(ceph(false), thing(api.KindDisk, "disk-1", api.DiskSpec{Use: api.DiskUnused}))

	t.allowed(thing(api.KindOrganization, "org-1", api.OrganizationSpec{}))
	service := thing(api.KindService, "svc-1", api.ServiceSpec{Organization: "org-1"})
	t.allowed(service)
	t.inUse(api.ObjectRef{Kind: api.KindService, ID: "svc-1"}, removing(api.KindOrganization, "org-1"))
	ended := at(9)
	service.Data = api.Encode(api.ServiceSpec{Organization: "org-1", TerminatedAt: &ended})
	t.allowed(service)
	t.allowed(removing(api.KindOrganization, "org-1"))
	var many []api.SecurityRule
	for n := range api.MaxReferences + 1 {
		many = append(many, api.SecurityRule{Group: api.SecurityGroupID(fmt.Sprint("sg-", n))})
	}
	t.wantCode(api.CodeTooLarge, t.strict(thing(api.KindSecurityGroup, "sg-many", api.SecurityGroupSpec{Rules: many})))
	t.missing("spec.flavor", thing(api.KindInstance, "ins-3", api.InstanceSpec{Flavor: "a\x00b"}))
	var e *api.Error
	both := t.strict(thing(api.KindInstance, "ins-3", api.InstanceSpec{Flavor: "flv-none", Image: "img-none"}))
	if !errors.As(both, &e) || e.Field != "spec.flavor" || len(e.Others) != 1 || e.Others[0].Field != "spec.image" {
		t.Errorf("instance with two missing references: %v, want errors for both", both)
	}
}

// testReferencesNeverDangle checks with concurrent batches that no object refers to a
// missing one.
func testReferencesNeverDangle(t *tester) {
	const flavors, images, instances = 3, 2, 6
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[api.Code]int{}
	for w := range 4 {
		r := rand.New(rand.NewPCG(uint64(w), 11))
		one := func() api.Command {
			f, i, n := fmt.Sprint("flv-", r.IntN(flavors)), fmt.Sprint("img-", r.IntN(images)), fmt.Sprint("ins-", r.IntN(instances))
			switch r.IntN(7) {
			case 0:
				return removing(api.KindFlavor, f)
			case 1:
				return removing(api.KindImage, i)
			case 2:
				return removing(api.KindInstance, n)
			case 3:
				return forgetting(api.KindInstance, n)
			case 4:
				return thing(api.KindFlavor, f, api.FlavorSpec{Vcpus: r.Int64N(3)})
			case 5:
				return held(thing(api.KindImage, i, api.ImageSpec{}))
			}
			return held(thing(api.KindInstance, n, api.InstanceSpec{Flavor: api.FlavorID(f), Image: api.ImageID(i)}))
		}
		wg.Go(func() {
			for n := range 150 {
				cmds := []api.Command{one()}
				if r.IntN(3) == 0 {
					cmds = append(cmds, one())
				}
				if r.IntN(4) == 0 {
					cmds = append(cmds, forgetting(api.KindImage, fmt.Sprint("img-", r.IntN(images))))
				}
				_, err := t.s.Apply(t.ctx, api.Batch{At: at(n), Strict: true, Commands: cmds})
				mu.Lock()
				if codes[api.CodeOf(err)]++; err == nil {
					codes[""]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.nothingDangles()
	if codes[""] == 0 || codes[api.CodeInUse] == 0 || codes[api.CodeNotFound] == 0 {
		t.Errorf("outcomes of the batches = %v, want successes, %s and %s", codes, api.CodeInUse, api.CodeNotFound)
	}
}

func (t *tester) nothingDangles() {
	t.Helper()
	page, err := t.s.List(t.ctx, api.ListQuery{Kind: api.KindInstance, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Items {
		for _, x := range api.References(o) {
			if _, err := t.s.Get(t.ctx, x.Target.Kind, x.Target.ID); err != nil {
				t.Errorf("%s %s refers at %s to a missing object: %v", o.Kind, o.Meta.ID, x.Field, err)
			}
		}
	}
}
