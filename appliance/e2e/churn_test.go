package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// churn: a hundred instances are made and deleted, twenty at a time; the node
// has room for fewer. Every other one is deleted before it can have started.
// Nothing is left of any: not on the node, not in OVN.
func churn(t *testing.T, w *world) {
	const at, rounds = 20, 5
	boot, err := os.ReadFile("../../hypervisor/drivertest/guest.bin") // switches off when it is told to
	if err != nil {
		t.Fatal(err)
	}
	if img, err := w.upload(t, "button", api.ImageSpec{Format: "raw"}, append(boot, make([]byte, mib-len(boot))...)); err != nil {
		t.Fatalf("%v %+v", err, img.Status)
	}
	began := time.Now()
	var all sync.WaitGroup
	for n := range at {
		all.Go(func() {
			for r := range rounds {
				if err := w.once(fmt.Sprintf("churn-%d-%d", n, r), (n+r)%2 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d instances made and deleted in %v", at*rounds, time.Since(began).Round(time.Second))
	w.nothingLeft(t)
	var ports string
	until(t, time.Minute, "OVN to forget their ports", func() bool {
		out, err := exec.Command("ovn-nbctl", "--db=unix:"+filepath.Join(w.run, "ovn", "ovnnb_db.sock"), "--timeout=10",
			"--bare", "--columns=name", "find", "Logical_Switch_Port", `type=""`).CombinedOutput()
		ports = strings.TrimSpace(string(out))
		return err == nil && ports == ""
	})
}

// once makes an instance, waits until it runs if it is to, deletes it, and
// waits until it is gone.
func (w *world) once(name string, run bool) error {
	in, err := w.tenant.Instances().Create(w.ctx, api.Instance{Meta: api.Meta{Name: name, Project: "one"}, Spec: api.InstanceSpec{Flavor: "tiny", Image: "button"}})
	if err != nil {
		return err
	}
	wait := func(what string, ok func() bool) error {
		for limit := time.Now().Add(4 * time.Minute); !ok(); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(limit) {
				now, err := w.tenant.Instances().Get(w.ctx, in.Meta.ID, client.Query{})
				return errors.Join(fmt.Errorf("%s: not %s: %+v, %+v", name, what, now.Assignment, now.Status), err)
			}
		}
		return nil
	}
	if run {
		if err := wait("running", func() bool {
			now, err := w.tenant.Instances().Get(w.ctx, in.Meta.ID, client.Query{})
			return err == nil && now.Status.Phase == api.InstanceRunning
		}); err != nil {
			return err
		}
	}
	if _, err := w.tenant.Instances().Delete(w.ctx, in.Meta.ID); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return wait("gone", func() bool {
		_, err := w.tenant.Instances().Get(w.ctx, in.Meta.ID, client.Query{})
		return err != nil && api.CodeOf(err) == api.CodeNotFound
	})
}

// nothingLeft asks the node, as an operator would.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	var out string
	for began := time.Now(); ; time.Sleep(time.Second) {
		var err error
		if out, err = w.cli(operatorToken(t, w), "doctor", "leaks"); err == nil {
			break
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("doctor leaks: %v\n%s", err, out)
		}
	}
	if !strings.Contains(out, "nothing is left") {
		t.Errorf("doctor leaks says:\n%s", out)
	}
}
