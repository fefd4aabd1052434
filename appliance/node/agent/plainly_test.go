package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// What a program or the system said is for the node's log; a status, which tenants
// read, has what was meant for them.
func TestStatusHasNoInternalErrors(t *testing.T) {
	w := newTown(t, 1, false)
	h := w.houses[0]
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
	w.until("the instance says that it failed", func() bool { return failedInstance() != "" })
	h.local.Fault(broken("ImportImage", "CreateVolume", "CreateSnapshot"))
	w.volume(h, "vol-3", api.PoolLocal, nil)
	w.snapshot(h, "snap-1", "vol-2")
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "x", Organization: "org-1", Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/x"})})
	w.assign(api.KindImage, "img-2", api.ImageAssignment{Node: h.id})
	said := func() map[string]string {
		return map[string]string{"instance": failedInstance(), "volume": w.vol("vol-3").Status.LastError,
			"snapshot": w.snap("snap-1").Status.LastError, "image": w.image("img-2").Status.LastError}
	}
	w.until("all say that they failed", func() bool {
		for _, text := range said() {
			if text == "" {
				return false
			}
		}
		return true
	})
	for what, text := range said() {
		if strings.Contains(text, "fork/exec") || !strings.Contains(text, "log") {
			t.Errorf("the %s says %q, want no more than where the reason stands", what, text)
		}
	}
}
