package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// TestUpgrade checks that there is only one upgrade, and that it can be paused and
// retried, but not deleted while a node is in the middle of it.
func TestUpgrade(t *testing.T) {
	e := servertest.Start(t, nil)
	a := operatorOf(t, e)
	make := func(name, version string) (api.Upgrade, error) {
		return client.Of[api.Upgrade](a).Create(t.Context(), api.Upgrade{Meta: api.Meta{Name: name}, Spec: api.UpgradeSpec{Version: version}})
	}
	if _, err := make("other", "2"); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("create an upgrade with another name: %v, want %s", err, api.CodeInvalid)
	}
	u, err := make(api.UpgradeName, "2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := make(api.UpgradeName, "3"); api.CodeOf(err) != api.CodeExists {
		t.Errorf("create a second upgrade: %v, want %s", err, api.CodeExists)
	}
	change := func(f func(*api.Upgrade)) error {
		now, err := client.Of[api.Upgrade](a).Get(t.Context(), u.Meta.ID, client.Query{})
		if err != nil {
			return err
		}
		f(&now)
		_, err = client.Of[api.Upgrade](a).Update(t.Context(), u.Meta.ID, now)
		return err
	}
	if err := change(func(u *api.Upgrade) { u.Spec.Paused, u.Spec.Attempt = true, 1 }); err != nil {
		t.Error(err)
	}
	for name, f := range map[string]func(*api.Upgrade){
		"another version": func(u *api.Upgrade) { u.Spec.Version = "3" },
		"another name":    func(u *api.Upgrade) { u.Meta.Name = "other" },
		"many attempts":   func(u *api.Upgrade) { u.Spec.Attempt = 9 },
	} {
		if err := change(f); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("change %s: error %v, want %s", name, err, api.CodeInvalid)
		}
	}
	says := func(s api.UpgradeStatus) {
		e.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindUpgrade, ID: u.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(s)})
	}
	for _, s := range []api.UpgradeStatus{{Phase: api.UpgradeRunning}, {Phase: api.UpgradePaused, Nodes: []api.UpgradeNode{{Phase: api.UpgradeNodeInstalling}}}} {
		says(s)
		if _, err := client.Of[api.Upgrade](a).Delete(t.Context(), u.Meta.ID); api.CodeOf(err) != api.CodeState {
			t.Errorf("delete the upgrade in status %+v: %v, want %s", s, err, api.CodeState)
		}
	}
	says(api.UpgradeStatus{Phase: api.UpgradeDone})
	if _, err := client.Of[api.Upgrade](a).Delete(t.Context(), u.Meta.ID); err != nil {
		t.Error(err)
	}
}

func TestUpgradePackages(t *testing.T) {
	e := servertest.Start(t, nil)
	a := operatorOf(t, e)
	content := bytes.Repeat([]byte("basalt"), 1<<20) // larger than the limit of other bodies
	sum := sha256.Sum256(content)
	id := hex.EncodeToString(sum[:])
	if err := a.PutUpgradePackage(t.Context(), id, bytes.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	if n := e.Packages.Size(id); n != int64(len(content)) {
		t.Errorf("stored package has %d bytes, want %d", n, len(content))
	}
	if err := a.PutUpgradePackage(t.Context(), id, strings.NewReader("another"), 7); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("upload content with another sum: %v, want %s", err, api.CodeInvalid)
	}
	if err := a.PutUpgradePackage(t.Context(), "..%2f..%2fetc", strings.NewReader("x"), 1); err == nil {
		t.Error("upload under a name that is not a SHA-256 sum succeeded, want an error")
	}
	alone := servertest.StartWith(t, func(o *server.Options) { o.Packages = nil })
	if err := operatorOf(t, alone).PutUpgradePackage(t.Context(), id, bytes.NewReader(content), -1); api.CodeOf(err) != api.CodeState {
		t.Errorf("upload to a node without a cluster: %v, want an error", err)
	}
}

func operatorOf(t *testing.T, e *servertest.Env) *client.API {
	t.Helper()
	a, err := client.New(client.Options{Server: e.URL, Token: e.Token})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
