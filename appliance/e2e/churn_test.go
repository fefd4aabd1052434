package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/installer/dev/patience"
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
	// A root volume goes after its instance.
	until(t, 2*time.Minute, "the last volume to go", func() bool {
		for v, err := range w.operator.Volumes().All(w.ctx, client.Query{}) {
			if err != nil || v.Meta.DeletedAt != nil {
				return false
			}
		}
		return true
	})
	w.nothingLeft(t)

	// A row that somebody's death could have left in OVN would have been seen.
	w.nbctl(t, "ls-add", "left", "--", "set", "Logical_Switch", "left", "external_ids:basalt=basalt", "external_ids:basalt-of=net-000000000000")
	out, err := w.cli(operatorToken(t, w), "doctor", "leaks")
	if err == nil || !strings.Contains(out, "net-000000000000") || !strings.Contains(out, "Logical_Switch left") {
		t.Errorf("doctor leaks does not see a row in OVN that is of nothing: %v\n%s", err, out)
	}
	w.nbctl(t, "--if-exists", "ls-del", "left")
	w.nothingLeft(t)
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
	for watch := patience.Start(); ; time.Sleep(time.Second) {
		var err error
		if out, err = w.cli(operatorToken(t, w), "doctor", "leaks"); err == nil {
			break
		}
		if watch.Over(2 * time.Minute) {
			t.Fatalf("doctor leaks: %v\n%s", err, out)
		}
	}
	if !strings.Contains(out, "nothing is left") {
		t.Errorf("doctor leaks says:\n%s", out)
	}
}
