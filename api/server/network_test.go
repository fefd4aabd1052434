package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// newNetworkWorld returns a world with networking and with keys for encrypted volumes.
func newNetworkWorld(t *testing.T) *world {
	t.Helper()
	return worldOf(t, servertest.StartWith(t, func(o *server.Options) {
		o.Networking = true
		o.NewVolumeKey = func(context.Context) (string, error) { return "wrapped", nil }
	}))
}

func wantCode(t *testing.T, what string, code api.Code, err error) {
	t.Helper()
	if err == nil || api.CodeOf(err) != code {
		t.Errorf("%s: error %v, want %s", what, err, code)
	}
}

// status writes the assignment and status of an object, as planner and agent do.
func (w *world) status(kind api.Kind, id string, assignment, status any) {
	w.t.Helper()
	w.Apply(w.t, api.Command{Op: api.OpAssign, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(assignment)},
		api.Command{Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(status)})
}

// TestProjectsBeginWithANetwork checks that a new project has a network and a security
// group, that new instances use them, and that both are deleted with the project.
func TestProjectsBeginWithANetwork(t *testing.T) {
	w := newNetworkWorld(t)
	q := client.Query{Project: w.web}
	n := must(t, ret(client.Of[api.Network](w.op).Get(t.Context(), "default", q))).v
	g := must(t, ret(client.Of[api.SecurityGroup](w.op).Get(t.Context(), "default", q))).v
	if n.Spec.Cidr4 == "" || n.Spec.Cidr6 == "" || n.Meta.Organization != w.acme || string(g.Spec.Rules[0].Group) != g.Meta.ID {
		t.Errorf("new project has network %+v and group %+v, want both address families and a rule for the group itself", n, g)
	}
	in := must(t, ret(w.instance(w.op, "one"))).v
	if len(in.Spec.Networks) != 1 || string(in.Spec.Networks[0].Network) != n.Meta.ID || string(in.Spec.Networks[0].SecurityGroups[0]) != g.Meta.ID {
		t.Errorf("networks of a new instance = %+v, want the project's default network and group", in.Spec.Networks)
	}
	// Applying the file that created it changes nothing.
	again := in
	again.Spec.Networks = nil
	again = must(t, ret(client.Of[api.Instance](w.op).Update(t.Context(), in.Meta.ID, again))).v
	if again.Meta.Generation != in.Meta.Generation {
		t.Errorf("spec after the file was applied again = %+v, want no new generation", again.Spec)
	}
	_, err := client.Of[api.Network](w.op).Delete(t.Context(), n.Meta.ID)
	wantCode(t, "a network in use", api.CodeInUse, err)
	_, err = client.Of[api.SecurityGroup](w.op).Delete(t.Context(), g.Meta.ID)
	wantCode(t, "a group in use", api.CodeInUse, err)
	theirs := must(t, ret(client.Of[api.Network](w.op).Get(t.Context(), "default", client.Query{Project: w.lab}))).v
	bad := in
	bad.Meta, bad.Spec.Networks = api.Meta{Name: "two", Project: w.web}, []api.InstanceNetwork{{Network: api.NetworkID(theirs.Meta.ID)}}
	_, err = client.Of[api.Instance](w.op).Create(t.Context(), bad)
	wantCode(t, "another project's network", api.CodeInvalid, err)

	// Its ports can change only while it is stopped.
	w.status(api.KindInstance, in.Meta.ID, api.InstanceAssignment{Node: "node-1"}, api.InstanceStatus{Phase: api.InstanceRunning})
	in = must(t, ret(client.Of[api.Instance](w.op).Get(t.Context(), in.Meta.ID, q))).v
	in.Spec.Networks[0].Address4 = strings.TrimSuffix(n.Spec.Cidr4, "0/24") + "77"
	_, err = client.Of[api.Instance](w.op).Update(t.Context(), in.Meta.ID, in)
	wantCode(t, "ports of a running instance", api.CodeState, err)

	must(t, ret(client.Of[api.Project](w.op).Delete(t.Context(), w.lab)))
	if _, err := client.Of[api.Network](w.op).Get(t.Context(), theirs.Meta.ID, client.Query{}); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("get the network of a deleted project: %v, want %s", err, api.CodeNotFound)
	}
	_, err = client.Of[api.Project](w.op).Delete(t.Context(), w.web)
	wantCode(t, "a project with an instance", api.CodeInUse, err)
}

// TestNetworksFitIntoTunnels checks that networks have an MTU that the tunnels of all
// nodes carry.
func TestNetworksFitIntoTunnels(t *testing.T) {
	w := newNetworkWorld(t)
	networks := client.Of[api.Network](w.op)
	create := func(name string, mtu int64) (api.Network, error) {
		n := api.Network{Meta: api.Meta{Name: name, Project: w.web}, Spec: api.NetworkSpec{Cidr4: "10.9.0.0/24", Mtu: mtu}}
		n, err := networks.Create(t.Context(), n)
		if err == nil {
			_, err = networks.Delete(t.Context(), n.Meta.ID)
		}
		return n, err
	}
	old := must(t, ret(networks.Create(t.Context(), api.Network{Meta: api.Meta{Name: "old", Project: w.web}, Spec: api.NetworkSpec{Cidr4: "10.8.0.0/24", Mtu: 9000}}))).v
	for id, mtu := range map[string]int64{"node-a": 8942, "node-b": 1392, "node-c": 0} {
		w.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindNode, ID: id, Name: id, Data: api.Encode(api.NodeSpec{})},
			api.Command{Op: api.OpReport, Kind: api.KindNode, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.NodeStatus{NetworkMtu: mtu})})
	}
	_, err := create("large", 1393)
	wantCode(t, "a network of 1393 bytes", api.CodeInvalid, err)
	if err == nil || !strings.Contains(err.Error(), "1393 bytes do not fit through the tunnels between the nodes, which carry 1392") {
		t.Errorf("create with 1393 bytes: got %v, want an error with the limit", err)
	}
	if n, err := create("fits", 1392); err != nil || n.Spec.Mtu != 1392 {
		t.Errorf("create with 1392 bytes: got %d, %v, want 1392", n.Spec.Mtu, err)
	}
	if n, err := create("usual", 0); err != nil || n.Spec.Mtu != 1392 {
		t.Errorf("create without an MTU: got %d, %v, want what fits, 1392", n.Spec.Mtu, err)
	}
	// The MTU of an existing network is kept, and can only change to one that fits.
	old.Spec.DNSServers = []string{"192.0.2.53"}
	old = must(t, ret(networks.Update(t.Context(), old.Meta.ID, old))).v
	old.Spec.Mtu = 8000
	_, err = networks.Update(t.Context(), old.Meta.ID, old)
	wantCode(t, "a network changed to 8000 bytes", api.CodeInvalid, err)
	p := must(t, ret(client.Of[api.Project](w.op).Create(t.Context(), api.Project{Meta: api.Meta{Name: "new", Organization: w.acme}}))).v
	if n := must(t, ret(networks.Get(t.Context(), "default", client.Query{Project: p.Meta.ID}))).v; n.Spec.Mtu != 1392 {
		t.Errorf("MTU of a new project's network = %d, want 1392", n.Spec.Mtu)
	}
}

// TestVolumesAndTheirSnapshots checks that a volume is attached to one instance at a
// time, that its key is never shown, and that snapshots are kept while volumes are made
// from them.
func TestVolumesAndTheirSnapshots(t *testing.T) {
	w := newNetworkWorld(t)
	one, two := must(t, ret(w.instance(w.op, "one"))).v, must(t, ret(w.instance(w.op, "two"))).v
	v := must(t, ret(client.Of[api.Volume](w.op).Create(t.Context(), api.Volume{Meta: api.Meta{Name: "data", Project: w.web},
		Spec: api.VolumeSpec{SizeBytes: 1 << 30, Encrypted: true, Instance: api.InstanceID(one.Meta.ID)}}))).v
	o := must(t, ret(w.Store.Get(t.Context(), api.KindVolume, v.Meta.ID))).v
	var stored api.VolumeSpec
	if err := json.Unmarshal(o.Spec, &stored); err != nil || stored.WrappedKey != "wrapped" || v.Spec.WrappedKey != "" {
		t.Fatalf("stored volume = %+v, shown = %+v, error %v; want the wrapped key in the store only", stored, v.Spec, err)
	}
	update := func(change func(*api.Volume)) error {
		now := must(t, ret(client.Of[api.Volume](w.op).Get(t.Context(), v.Meta.ID, client.Query{}))).v
		change(&now)
		_, err := client.Of[api.Volume](w.op).Update(t.Context(), v.Meta.ID, now)
		return err
	}
	place := api.VolumeAssignment{Node: "node-1", Pool: api.PoolLocal}
	w.status(api.KindVolume, v.Meta.ID, place, api.VolumeStatus{Phase: api.VolumeReady, SizeBytes: 1 << 30, Attached: api.InstanceID(one.Meta.ID)})
	wantCode(t, "attached twice", api.CodeInvalid, update(func(v *api.Volume) { v.Spec.Instance = api.InstanceID(two.Meta.ID) }))
	if err := update(func(v *api.Volume) { v.Spec.Instance = "" }); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "not yet let go of", api.CodeInUse, update(func(v *api.Volume) { v.Spec.Instance = api.InstanceID(two.Meta.ID) }))
	if o = must(t, ret(w.Store.Get(t.Context(), api.KindVolume, v.Meta.ID))).v; !strings.Contains(string(o.Spec), "wrapped") {
		t.Error("the stored volume has no key after a change, want it kept")
	}

	s := must(t, ret(client.Of[api.Snapshot](w.op).Create(t.Context(), api.Snapshot{Meta: api.Meta{Name: "s", Project: w.web}, Spec: api.SnapshotSpec{Volume: "data"}}))).v
	clone := api.Volume{Meta: api.Meta{Name: "clone", Project: w.web}, Spec: api.VolumeSpec{Snapshot: "s"}}
	_, err := client.Of[api.Volume](w.op).Create(t.Context(), clone)
	wantCode(t, "a clone of what is not ready", api.CodeState, err)
	w.status(api.KindSnapshot, s.Meta.ID, api.SnapshotAssignment{Node: "node-1", Pool: api.PoolLocal}, api.SnapshotStatus{Phase: api.SnapshotReady, SizeBytes: 1 << 30})
	wantCode(t, "a rollback under a running instance", api.CodeInUse, update(func(v *api.Volume) { v.Spec.Rollback = &api.VolumeRollback{Snapshot: "s", Count: 1} }))
	_, err = w.op.DeleteVolume(t.Context(), v.Meta.ID, false)
	wantCode(t, "a volume with snapshots", api.CodeInUse, err)
	clone = must(t, ret(client.Of[api.Volume](w.op).Create(t.Context(), clone))).v
	if clone.Spec.SizeBytes != 1<<30 || clone.Spec.Pool != api.PoolLocal || !clone.Spec.Encrypted {
		t.Errorf("clone = %+v, want size, pool and encryption of the original", clone.Spec)
	}
	for _, cascade := range []bool{false, true} {
		_, err = w.op.DeleteVolume(t.Context(), v.Meta.ID, cascade)
		wantCode(t, "a volume with clones", api.CodeInUse, err)
	}
	_, err = client.Of[api.Snapshot](w.op).Delete(t.Context(), s.Meta.ID)
	wantCode(t, "a snapshot with clones", api.CodeInUse, err)
	must(t, ret(w.op.DeleteVolume(t.Context(), clone.Meta.ID, false)))
	w.Apply(t, api.Command{Op: api.OpForget, Kind: api.KindVolume, ID: clone.Meta.ID, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent})
	must(t, ret(w.op.DeleteVolume(t.Context(), v.Meta.ID, true)))
	if s = must(t, ret(client.Of[api.Snapshot](w.op).Get(t.Context(), s.Meta.ID, client.Query{}))).v; s.Meta.DeletedAt == nil {
		t.Error("snapshot of a volume deleted with cascade is not marked deleted, want it marked")
	}
}

// TestSecretsOfTargets checks that the secrets of a backup target are stored and never
// shown by any operation.
func TestSecretsOfTargets(t *testing.T) {
	w := newNetworkWorld(t)
	target := must(t, ret(client.Of[api.BackupTarget](w.op).Create(t.Context(), api.BackupTarget{Meta: api.Meta{Name: "s3"}, Spec: api.BackupTargetSpec{
		S3: &api.S3Target{Endpoint: "https://s3.example", Bucket: "abc", AccessKey: "id", SecretKey: "very-secret"}}}))).v
	stored := must(t, ret(w.Store.Get(t.Context(), api.KindBackupTarget, target.Meta.ID))).v
	kept, err := api.Decode[api.BackupTarget](stored)
	if err != nil || kept.Spec.S3.SecretKey != "very-secret" || len(kept.Spec.Password) < 20 {
		t.Fatalf("stored target = %+v, %v; want the secret key and a generated password", kept.Spec, err)
	}
	seen := must(t, ret(client.Of[api.BackupTarget](w.op).Get(t.Context(), "s3", client.Query{}))).v
	page := must(t, ret(client.Of[api.BackupTarget](w.op).Page(t.Context(), client.Query{}))).v
	seen.Spec.S3.Endpoint = "https://s4.example"
	changed := must(t, ret(client.Of[api.BackupTarget](w.op).Update(t.Context(), target.Meta.ID, seen))).v
	for _, v := range []any{target, seen, page, changed} {
		if raw := string(api.Encode(v)); strings.Contains(raw, "very-secret") || strings.Contains(raw, kept.Spec.Password) {
			t.Errorf("response contains a secret: %s", raw)
		}
	}
	kept, err = api.Decode[api.BackupTarget](must(t, ret(w.Store.Get(t.Context(), api.KindBackupTarget, target.Meta.ID))).v)
	if err != nil || kept.Spec.S3.SecretKey != "very-secret" || kept.Spec.S3.Endpoint != "https://s4.example" {
		t.Errorf("target after a change = %+v, %v; want the secret key kept and the new endpoint", kept.Spec, err)
	}
}

// TestKindsThatAreLacking checks that exactly the kinds in Unavailable are refused, with the
// reason.
func TestKindsThatAreLacking(t *testing.T) {
	e := servertest.StartWith(t, func(o *server.Options) {
		o.Unavailable = map[api.Kind]string{api.KindCephCluster: "there is no Ceph here"}
	})
	c := connect(t, e, e.Token)
	_, err := client.Of[api.CephCluster](c).Create(t.Context(), api.CephCluster{Kind: api.KindCephCluster, Meta: api.Meta{Name: "ceph"}, Spec: api.CephClusterSpec{Enabled: true}})
	if api.CodeOf(err) != api.CodeUnavailable || !strings.Contains(err.Error(), "there is no Ceph here") {
		t.Errorf("create a Ceph cluster: %v, want %s with the reason", err, api.CodeUnavailable)
	}
	if _, err := client.Of[api.BackupTarget](c).Create(t.Context(), api.BackupTarget{Kind: api.KindBackupTarget, Meta: api.Meta{Name: "bt"}, Spec: api.BackupTargetSpec{Directory: "/srv/backup"}}); err != nil {
		t.Errorf("create a backup target: %v, want no error", err)
	}
}

// sealer returns a different sealed form each time, like the real one.
type sealer struct{ n int }

func (s *sealer) Seal(_ context.Context, secret string) (string, error) {
	s.n++
	return fmt.Sprintf("sealed:%d:%x", s.n, secret), nil
}

func (s *sealer) Open(_ context.Context, sealed string) (secret string, err error) {
	var n int
	var raw []byte
	_, err = fmt.Sscanf(sealed, "sealed:%d:%x", &n, &raw)
	return string(raw), err
}

// TestSecretsOfTargetsAreSealed checks that secrets are sealed in the store, and that
// applying the same spec again changes nothing.
func TestSecretsOfTargetsAreSealed(t *testing.T) {
	seals := &sealer{}
	e := servertest.StartWith(t, func(o *server.Options) { o.Secrets = seals })
	c := connect(t, e, e.Token)
	spec := api.BackupTargetSpec{Password: "a long password", S3: &api.S3Target{Endpoint: "https://s3.example", Bucket: "abc", AccessKey: "id", SecretKey: "very-secret"}}
	target := must(t, ret(client.Of[api.BackupTarget](c).Create(t.Context(), api.BackupTarget{Meta: api.Meta{Name: "s3"}, Spec: spec}))).v
	kept := func() api.BackupTargetSpec {
		return must(t, ret(api.Decode[api.BackupTarget](must(t, ret(e.Store.Get(t.Context(), api.KindBackupTarget, target.Meta.ID))).v))).v.Spec
	}
	first := kept()
	for _, s := range []string{first.Password, first.S3.SecretKey} {
		if !strings.HasPrefix(s, "sealed:") {
			t.Errorf("stored secret = %q, want it sealed", s)
		}
	}
	put := func(s api.BackupTargetSpec) error {
		now := must(t, ret(client.Of[api.BackupTarget](c).Get(t.Context(), "s3", client.Query{}))).v
		now.Spec = s
		_, err := client.Of[api.BackupTarget](c).Update(t.Context(), target.Meta.ID, now)
		return err
	}
	without := spec
	s3 := *spec.S3
	s3.SecretKey, without.Password, without.S3 = "", "", &s3
	for _, s := range []api.BackupTargetSpec{spec, without} {
		if err := put(s); err != nil || !reflect.DeepEqual(kept(), first) {
			t.Errorf("apply the same target again: error %v, stored %+v; want no change", err, kept())
		}
	}
	s3.SecretKey = "another"
	if err := put(without); err != nil {
		t.Error(err)
	}
	if got, err := seals.Open(t.Context(), kept().S3.SecretKey); err != nil || got != "another" || kept().Password != first.Password {
		t.Errorf("stored target after a new secret key = %+v; it opens as %q, %v; want another, and the same password", kept(), got, err)
	}
	without.Password = "another password"
	wantCode(t, "another password", api.CodeInvalid, put(without))
	without.Password, s3.SecretKey = "", strings.Repeat("x", 1025)
	wantCode(t, "a key that is too long", api.CodeInvalid, put(without))
}

// TestFloatingIPOfLoadBalancer checks that a floating IP is used
// by an instance or by load balancers, but not by both.
func TestFloatingIPOfLoadBalancer(t *testing.T) {
	w := newNetworkWorld(t)
	meta := api.Meta{Project: w.web}
	named := func(name string) api.Meta { m := meta; m.Name = name; return m }
	must(t, ret(client.Of[api.ExternalNetwork](w.op).Create(t.Context(), api.ExternalNetwork{Meta: api.Meta{Name: "internet"},
		Spec: api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Ranges4: []string{"203.0.113.10-203.0.113.20"}, Default: true}})))
	must(t, ret(w.instance(w.op, "one")))
	f := must(t, ret(client.Of[api.FloatingIP](w.op).Create(t.Context(), api.FloatingIP{Meta: named("www")}))).v
	l := must(t, ret(client.Of[api.LoadBalancer](w.op).Create(t.Context(), api.LoadBalancer{Meta: named("balancer"),
		Spec: api.LoadBalancerSpec{Network: "default", Protocol: api.ProtocolTCP, Port: 80, FloatingIP: "www", Backends: []api.LoadBalancerBackend{{Instance: "one", Port: 80}}}}))).v
	bound := f
	bound.Spec.Instance = "one"
	_, err := client.Of[api.FloatingIP](w.op).Update(t.Context(), f.Meta.ID, bound)
	wantCode(t, "a balancer's floating IP for an instance", api.CodeInUse, err)

	l.Spec.FloatingIP = ""
	must(t, ret(client.Of[api.LoadBalancer](w.op).Update(t.Context(), l.Meta.ID, l)))
	must(t, ret(client.Of[api.FloatingIP](w.op).Update(t.Context(), f.Meta.ID, bound)))
}
