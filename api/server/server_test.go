package server_test

import (
	"errors"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// world is a server with two organizations: acme with projects web and lab, and other
// with one project; also a flavor and a public image.
type world struct {
	*servertest.Env
	t                *testing.T
	op               *client.API
	acme, other      string
	web, lab, theirs string
}

func connect(t testing.TB, e *servertest.Env, token string) *client.API {
	t.Helper()
	c, err := client.New(client.Options{Server: e.URL, Token: token, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOf(t, servertest.Start(t, nil))
}

func worldOf(t *testing.T, e *servertest.Env) *world {
	t.Helper()
	w := &world{Env: e, t: t, op: connect(t, e, e.Token)}
	org := func(name string) string {
		o, err := client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: name}})
		return must(t, o, err).Meta.ID
	}
	project := func(org, name string) string {
		o, err := client.Of[api.Project](w.op).Create(t.Context(), api.Project{Meta: api.Meta{Name: name, Organization: org}})
		return must(t, o, err).Meta.ID
	}
	w.acme, w.other = org("acme"), org("other")
	w.web, w.lab, w.theirs = project("acme", "web"), project(w.acme, "lab"), project("other", "web")
	must(t, ret(client.Of[api.Flavor](w.op).Create(t.Context(), api.Flavor{Meta: api.Meta{Name: "small"}, Spec: api.FlavorSpec{Vcpus: 2, MemoryBytes: 1 << 30, RootBytes: 2 << 30}})))
	must(t, ret(client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: "debian"}, Spec: api.ImageSpec{Format: "qcow2"}})))
	return w
}

type result[T any] struct {
	v   T
	err error
}

func ret[T any](v T, err error) result[T] { return result[T]{v, err} }

func must[T any](t testing.TB, v T, errs ...error) T {
	t.Helper()
	if r, ok := any(v).(interface{ failed() error }); ok {
		errs = append(errs, r.failed())
	}
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func (r result[T]) failed() error { return r.err }

// as returns a client with a key of a role in a scope.
func (w *world) as(role api.Role, org, project string) *client.API {
	w.t.Helper()
	name := "k-" + string(role) + "-" + time.Now().Format("150405") + "-" + project
	return connect(w.t, w.Env, w.Key(w.t, api.Meta{Name: name, Organization: org, Project: project}, role))
}

func wantErr(t testing.TB, err error, code api.Code, field string) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want %s", err, code)
	}
	if e.Code != code || e.Field != field {
		t.Fatalf("error %s at %q (%v), want %s at %q", e.Code, e.Field, e, code, field)
	}
}

func (w *world) instance(c *client.API, name string) (api.Instance, error) {
	return client.Of[api.Instance](c).Create(w.t.Context(), api.Instance{Meta: api.Meta{Name: name, Project: w.web}, Spec: api.InstanceSpec{
		Flavor: "small", Image: "debian", Vgpu: &api.VGPUSpec{VramBytes: 1 << 30}}})
}

func TestCreateInstanceAndRootVolume(t *testing.T) {
	w := newWorld(t)
	member := w.as(api.RoleMember, w.acme, w.web)
	in, err := w.instance(member, "demo")
	if err != nil {
		t.Fatal(err)
	}
	if !api.LooksLikeID(in.Meta.ID) || in.Meta.Organization != w.acme || in.Meta.Project != w.web || len(in.Meta.Finalizers) != 1 {
		t.Errorf("meta of the new instance = %+v, want an ID, scope and finalizers", in.Meta)
	}
	if in.Spec.Power != api.PowerRunning || in.Spec.Vgpu.Pool != "default" || !api.LooksLikeID(string(in.Spec.Flavor)) || !api.LooksLikeID(string(in.Spec.Image)) {
		t.Errorf("spec of the new instance = %+v, want defaults and IDs", in.Spec)
	}
	var roots []api.Volume
	for v, err := range client.Of[api.Volume](member).All(t.Context(), client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, v)
	}
	if len(roots) != 1 || !roots[0].Spec.Root || string(roots[0].Spec.Instance) != in.Meta.ID || roots[0].Spec.Image != in.Spec.Image ||
		roots[0].Spec.SizeBytes != 2<<30 || roots[0].Meta.Project != w.web || len(roots[0].Meta.Finalizers) != 1 {
		t.Errorf("volumes of the new instance = %+v, want one root volume of 2 GiB", roots)
	}
	_, err = w.instance(member, "demo")
	wantErr(t, err, api.CodeExists, "meta.name")
	got, err := client.Of[api.Instance](member).Get(t.Context(), "demo", client.Query{})
	if err != nil || got.Meta.ID != in.Meta.ID {
		t.Errorf("get the instance by name: %v, %v; want ID %s", got, err, in.Meta.ID)
	}
	if _, err := client.Of[api.Instance](member).Delete(t.Context(), in.Meta.ID); err != nil {
		t.Fatal(err)
	}
	got, err = client.Of[api.Instance](member).Get(t.Context(), in.Meta.ID, client.Query{})
	if err != nil || got.Meta.DeletedAt == nil {
		t.Errorf("deleted instance that its agent still holds = %+v, %v; want it marked deleted", got.Meta, err)
	}
}

func TestInstanceActions(t *testing.T) {
	w := newWorld(t)
	c := w.as(api.RoleMember, w.acme, w.web)
	in, err := w.instance(c, "demo")
	if err != nil {
		t.Fatal(err)
	}
	ctx, id := t.Context(), in.Meta.ID
	if in, err = c.StopInstance(ctx, id); err != nil || in.Spec.Power != api.PowerStopped {
		t.Errorf("stop: spec %+v, error %v; want power Stopped", in.Spec, err)
	}
	if in, err = c.RestartInstance(ctx, id); err != nil || in.Spec.Power != api.PowerRunning || in.Spec.Restarts != 0 {
		t.Errorf("restart a stopped instance: spec %+v, error %v; want power Running and 0 restarts", in.Spec, err)
	}
	if in, err = c.RestartInstance(ctx, id); err != nil || in.Spec.Restarts != 1 {
		t.Errorf("restart a running instance: spec %+v, error %v; want 1 restart", in.Spec, err)
	}
	if in, err = c.StartInstance(ctx, id); err != nil || in.Spec.Restarts != 1 {
		t.Errorf("start a running instance: spec %+v, error %v; want no further restart", in.Spec, err)
	}
	failed := api.Encode(api.InstanceStatus{Phase: api.InstanceFailed, Restarts: 1, ObservedGeneration: in.Meta.Generation})
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: failed})
	for range 2 { // repeated before its agent has seen the first request
		if in, err = c.StartInstance(ctx, id); err != nil || in.Spec.Restarts != 2 || in.Spec.Power != api.PowerRunning {
			t.Errorf("start an instance whose run has failed: spec %+v, error %v; want 2 restarts", in.Spec, err)
		}
	}
	if log, err := c.ConsoleLog(ctx, id, 7); err != nil || string(log) != "login: " {
		t.Errorf("console log = %q, %v; want %q", log, err, "login: ")
	}
	if r, err := c.Exec(ctx, id, api.ExecRequest{Argv: []string{"echo", "a b"}, Stdin: []byte("in")}); err != nil || string(r.Stdout) != "[\"echo\" \"a b\"]\nin" {
		t.Errorf("exec echo = %+v, %v; want its output", r, err)
	}
	_, err = c.Exec(ctx, id, api.ExecRequest{})
	wantErr(t, err, api.CodeInvalid, "argv")
	conn, err := c.Console(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "hello" {
		t.Errorf("console sends %q, %v; want hello", buf, err)
	}
	viewer := w.as(api.RoleViewer, w.acme, w.web)
	_, err = viewer.Console(ctx, id)
	wantErr(t, err, api.CodeForbidden, "")
}

func TestInstanceChanges(t *testing.T) {
	w := newWorld(t)
	in, err := w.instance(w.op, "demo")
	if err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*api.Instance){
		"spec.rootBytes":      func(i *api.Instance) { i.Spec.RootBytes = 8 << 30 },
		"spec.userData":       func(i *api.Instance) { i.Spec.UserData = "x" },
		"spec.flavor":         func(i *api.Instance) { i.Spec.Flavor = "none" },
		"spec.vgpu.pool":      func(i *api.Instance) { i.Spec.Vgpu = &api.VGPUSpec{Pool: "none", VramBytes: 1 << 30} },
		"spec.vgpu.vramBytes": func(i *api.Instance) { i.Spec.Vgpu = &api.VGPUSpec{VramBytes: 1} },
		"spec.power":          func(i *api.Instance) { i.Spec.Power = "Asleep" },
		"meta.revision":       func(i *api.Instance) { i.Meta.Revision = 0 },
		"meta.name":           func(i *api.Instance) { i.Meta.Name = "A" },
		"meta.project":        func(i *api.Instance) { i.Meta.Project = "lab" },
	} {
		other := in
		change(&other)
		_, err := client.Of[api.Instance](w.op).Update(t.Context(), in.Meta.ID, other)
		wantErr(t, err, api.CodeInvalid, field)
	}
	stale := in
	in.Spec.Vgpu = &api.VGPUSpec{VramBytes: 2 << 30}
	in.Meta.Labels = map[string]string{"a": "b"}
	in.Meta.Project = "web" // a name is accepted in place of the ID
	changed, err := client.Of[api.Instance](w.op).Update(t.Context(), in.Meta.ID, in)
	if err != nil || changed.Meta.Generation != 2 || changed.Spec.Vgpu.VramBytes != 2<<30 || changed.Meta.Labels["a"] != "b" {
		t.Errorf("changed instance = %+v, %v; want generation 2, 2 GiB of VRAM and the label", changed, err)
	}
	_, err = client.Of[api.Instance](w.op).Update(t.Context(), in.Meta.ID, stale)
	wantErr(t, err, api.CodeConflict, "")
}

func TestAPIKeyIsShownOnce(t *testing.T) {
	w := newWorld(t)
	admin := w.as(api.RoleAdmin, w.acme, "")
	key, err := client.Of[api.APIKey](admin).Create(t.Context(), api.APIKey{Meta: api.Meta{Name: "ci", Project: "web"}, Spec: api.APIKeySpec{Role: api.RoleMember}})
	if err != nil || key.Secret == "" || key.Spec.Hash != "" || key.Meta.Project != w.web {
		t.Fatalf("new key = %+v, %v; want a secret, no hash, and project %s", key, err, w.web)
	}
	me, err := connect(t, w.Env, key.Secret).Whoami(t.Context())
	if err != nil || me.Key != key.Meta.ID || me.Role != api.RoleMember || me.Project != w.web {
		t.Errorf("identity of the new key = %+v, %v; want member of project %s", me, err, w.web)
	}
	again, err := client.Of[api.APIKey](admin).Get(t.Context(), key.Meta.ID, client.Query{})
	if err != nil || again.Secret != "" || again.Spec.Hash != "" {
		t.Errorf("key read again = %+v, %v; want no secret and no hash", again, err)
	}
	// A change keeps the secret.
	again.Meta.Labels = map[string]string{"a": "b"}
	if _, err := client.Of[api.APIKey](admin).Update(t.Context(), key.Meta.ID, again); err != nil {
		t.Fatal(err)
	}
	must(t, ret(connect(t, w.Env, key.Secret).Whoami(t.Context())))
	for _, bad := range []string{"", "x", key.Secret[:len(key.Secret)-1] + "x", key.Secret + "0", "bslt_key-000000000000_" + key.Secret[len(key.Secret)-64:],
		key.Secret[:len(key.Secret)-64] + "0000000000000000000000000000000000000000000000000000000000000000"} {
		_, err := connect(t, w.Env, bad).Whoami(t.Context())
		wantErr(t, err, api.CodeUnauthenticated, "")
	}
	if _, err := client.Of[api.APIKey](admin).Delete(t.Context(), key.Meta.ID); err != nil {
		t.Fatal(err)
	}
	_, err = connect(t, w.Env, key.Secret).Whoami(t.Context())
	wantErr(t, err, api.CodeUnauthenticated, "")
	// A key cannot have more rights than its creator.
	_, err = client.Of[api.APIKey](admin).Create(t.Context(), api.APIKey{Meta: api.Meta{Name: "op"}, Spec: api.APIKeySpec{Role: api.RoleOperator}})
	wantErr(t, err, api.CodeForbidden, "spec.role")
	_, err = client.Of[api.APIKey](admin).Create(t.Context(), api.APIKey{Meta: api.Meta{Name: "theirs", Project: w.theirs}, Spec: api.APIKeySpec{Role: api.RoleViewer}})
	wantErr(t, err, api.CodeInvalid, "meta.project")
}

func TestKeysExpire(t *testing.T) {
	clock := servertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	e := servertest.Start(t, clock.Now)
	op := connect(t, e, e.Token)
	end := clock.Now().Add(time.Hour)
	key, err := client.Of[api.APIKey](op).Create(t.Context(), api.APIKey{Meta: api.Meta{Name: "k"}, Spec: api.APIKeySpec{Role: api.RoleOperator, ExpiresAt: &end}})
	if err != nil {
		t.Fatal(err)
	}
	must(t, ret(connect(t, e, key.Secret).Whoami(t.Context())))
	clock.Advance(time.Hour)
	_, err = connect(t, e, key.Secret).Whoami(t.Context())
	wantErr(t, err, api.CodeUnauthenticated, "")
	_, err = client.Of[api.APIKey](op).Create(t.Context(), api.APIKey{Meta: api.Meta{Name: "l"}, Spec: api.APIKeySpec{Role: api.RoleOperator, ExpiresAt: &end}})
	wantErr(t, err, api.CodeInvalid, "spec.expiresAt")
}

func TestWatchShowsWhatTheKeySees(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	member := w.as(api.RoleMember, w.acme, w.web)
	seen := map[string]bool{}
	made := false
	for e, err := range member.Watch(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == api.EventSync && !made {
			made = true
			theirs := w.as(api.RoleMember, w.other, w.theirs)
			must(t, ret(client.Of[api.Volume](theirs).Create(ctx, api.Volume{Meta: api.Meta{Name: "secret"}, Spec: api.VolumeSpec{SizeBytes: 1 << 20}})))
			must(t, ret(w.instance(member, "demo")))
		}
		seen[string(e.Object.Kind)+" "+e.Object.Meta.Name] = true
		if e.Object.Kind == api.KindInstance {
			break
		}
	}
	if !made || seen["Volume secret"] || seen["Project lab"] || seen["APIKey operator"] || !seen["Project web"] || !seen["Image debian"] || !seen["Flavor small"] {
		t.Errorf("objects in the watch = %v, want those of project web and public ones without secrets", seen)
	}
}
