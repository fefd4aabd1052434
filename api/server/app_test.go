package server_test

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func TestInstanceFromApp(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	member := w.as(api.RoleMember, w.acme, w.web)
	userData := func(in api.Instance) string { // user data is never shown
		if in.Spec.UserData != "" {
			t.Errorf("instance %s shows its user data %q, want none", in.Meta.Name, in.Spec.UserData)
		}
		o := must(t, ret(w.Store.Get(ctx, api.KindInstance, in.Meta.ID))).v
		return must(t, ret(api.Decode[api.Instance](o))).v.Spec.UserData
	}
	spec := api.AppSpec{DisplayName: "JupyterLab", Version: "1", Image: "debian", UserData: "#cloud-config\n", Needs: api.AppNeeds{VramBytes: 1 << 30}}
	app := must(t, ret(client.Of[api.App](w.op).Create(ctx, api.App{Meta: api.Meta{Name: "jupyter"}, Spec: spec}))).v
	if _, err := client.Of[api.App](member).Create(ctx, api.App{Meta: api.Meta{Name: "mine"}, Spec: spec}); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("a member creates an app: %v, want an error", err)
	}
	in := api.Instance{Meta: api.Meta{Name: "demo", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", App: "jupyter"}}
	field := func(what string, err error, code api.Code, field string) {
		t.Helper()
		var e *api.Error
		if !errors.As(err, &e) || e.Code != code || e.Field != field || e.Hint == "" {
			t.Errorf("%s: error %v, want %s at %s, with a hint", what, err, code, field)
		}
	}
	_, err := client.Of[api.Instance](member).Create(ctx, in)
	field("without the VRAM that it needs", err, api.CodeInvalid, "spec.vgpu.vramBytes")
	in.Spec.Vgpu = &api.VGPUSpec{VramBytes: 1 << 30}
	made := must(t, ret(client.Of[api.Instance](member).Create(ctx, in))).v
	image := must(t, ret(client.Of[api.Image](w.op).Get(ctx, "debian", client.Query{}))).v
	if s := made.Spec; s.App != api.AppID(app.Meta.ID) || s.Image != api.ImageID(image.Meta.ID) || userData(made) != spec.UserData {
		t.Errorf("spec of an instance created from an app = %+v, want the app's fields filled in", s)
	}

	// When the app is changed and then deleted, the instance keeps its spec, also when
	// its original file is applied again.
	app.Spec.UserData, app.Spec.Version = "#cloud-config\nruncmd: []\n", "2"
	must(t, ret(client.Of[api.App](w.op).Update(ctx, app.Meta.ID, app)))
	again := in
	again.Meta.Revision = made.Meta.Revision
	same := must(t, ret(client.Of[api.Instance](member).Update(ctx, made.Meta.ID, again))).v
	if userData(same) != spec.UserData || same.Spec.App != made.Spec.App {
		t.Errorf("spec after the file was applied again = %+v, want the app and user data unchanged", same.Spec)
	}
	other := must(t, ret(client.Of[api.App](w.op).Create(ctx, api.App{Meta: api.Meta{Name: "other"}, Spec: spec}))).v
	again.Meta.Revision, again.Spec.App = same.Meta.Revision, api.AppID(other.Meta.Name)
	_, err = client.Of[api.Instance](member).Update(ctx, made.Meta.ID, again)
	field("another app", err, api.CodeInvalid, "spec.app")
	must(t, ret(client.Of[api.App](w.op).Delete(ctx, app.Meta.ID)))
	again.Spec.App = ""
	must(t, ret(client.Of[api.Instance](member).Update(ctx, made.Meta.ID, again)))

	other.Spec.Image = "debian-99"
	must(t, ret(client.Of[api.App](w.op).Update(ctx, other.Meta.ID, other)))
	in.Meta.Name, in.Spec.App = "second", "other"
	_, err = client.Of[api.Instance](member).Create(ctx, in)
	field("an image that is not there", err, api.CodeInvalid, "spec.app")
	in.Spec.App = "nobody"
	_, err = client.Of[api.Instance](member).Create(ctx, in)
	field("no such app", err, api.CodeInvalid, "spec.app")
	in.Spec.App, in.Spec.Image, in.Spec.UserData = "other", "debian", "#!/bin/sh\n"
	own := must(t, ret(client.Of[api.Instance](member).Create(ctx, in))).v
	if userData(own) != "#!/bin/sh\n" {
		t.Errorf("spec of an instance with user data of its own = %+v, want it kept", own.Spec)
	}
	own.Spec.Priority = 7 // read, modified and written back
	if own = must(t, ret(client.Of[api.Instance](member).Update(ctx, own.Meta.ID, own))).v; own.Spec.Priority != 7 || userData(own) != "#!/bin/sh\n" {
		t.Errorf("spec after a change = %+v, want priority 7 and its own user data", own.Spec)
	}
}
