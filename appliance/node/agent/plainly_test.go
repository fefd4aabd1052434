package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// TestStatusHasNoInternalErrors checks that what a program or the system printed is
// only in the node's log, and that a status, which customers read, has messages
// written for them.
func TestStatusHasNoInternalErrors(t *testing.T) {
	w := newTestCluster(t, 1, false)
	h := w.nodes[0]
	failedInstance := func() string { in, _ := w.instance("ins-1"); return in.Status.LastError }
	internal := errors.New("fork/exec /usr/libexec/tool: no such file or directory")
	broken := func(verbs ...string) func(op, id string) error {
		return func(op, _ string) error {
			for _, v := range verbs {
				if op == v {
					return internal
				}
			}
			return nil
		}
	}
	w.volume(h, "vol-2", api.PoolLocal, nil)
	w.ready("vol-2")
	w.upload(h, "img-1")
	h.machines.Fault(func(op string, _ api.InstanceID) error { return broken("Define")(op, "") })
	w.create(h, "ins-1", api.PoolLocal, nil)
	w.until("the failure in the instance's status", func() bool { return failedInstance() != "" })
	h.local.Fault(broken("ImportImage", "CreateVolume", "CreateSnapshot"))
	w.volume(h, "vol-3", api.PoolLocal, nil)
	w.snapshot(h, "snap-1", "vol-2")
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "x", Organization: "org-1", Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/x"})})
	w.assign(api.KindImage, "img-2", api.ImageAssignment{Node: h.id})
	messages := func() map[string]string {
		return map[string]string{"instance": failedInstance(), "volume": w.vol("vol-3").Status.LastError,
			"snapshot": w.snap("snap-1").Status.LastError, "image": w.image("img-2").Status.LastError}
	}
	w.until("the failures in all statuses", func() bool {
		for _, text := range messages() {
			if text == "" {
				return false
			}
		}
		return true
	})
	for what, text := range messages() {
		if strings.Contains(text, "fork/exec") || !strings.Contains(text, "log") {
			t.Errorf("lastError of the %s = %q, want only a reference to the log", what, text)
		}
	}
}

// TestMigrationStatusHasTheCause checks that the status of a failed migration has the
// cause in one sentence, and not the chain of errors.
func TestMigrationStatusHasTheCause(t *testing.T) {
	internal := errors.New("unable to execute QEMU command 'migrate'")
	lost := api.Errorf(api.CodeUnavailable, "the connection to the target is lost")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"domain error", fmt.Errorf("send instance: %w", errors.Join(lost, internal)), lost.Message},
		{"internal error", fmt.Errorf("send instance: %w", internal), "it failed because of a problem of its node, whose log has the details"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a, b := migrating(t, api.PoolShared)
			a.machines.MigrationStep(func(context.Context, api.InstanceID, hypervisor.MigrationProgress) error { return c.err })
			w.moveTo(a, b)
			if p, got := w.ended(), w.migration().Status.LastError; p != api.MigrationFailed || got != c.want {
				t.Errorf("migration phase = %s, lastError %q, want %s and %q", p, got, api.MigrationFailed, c.want)
			}
		})
	}
}
