package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
)

// TestDomainCallsNameWhatFailed checks that an error of the hypervisor is returned with
// the operation and the instance, and keeps its code and the message for users.
func TestDomainCallsNameWhatFailed(t *testing.T) {
	machines := hypfake.New(hypfake.Guest{})
	d := &domainCalls{o: &Options{Machines: machines, Migrator: machines}}
	ctx, id := context.Background(), api.InstanceID("ins-1")
	calls := map[string]func() error{
		"list the domains of this node":                    func() error { _, err := d.list(ctx); return err },
		"query which machines the hypervisor supports":     func() error { _, err := d.abilities(ctx); return err },
		"query the domain state of instance ins-1":         func() error { _, err := d.status(ctx, id); return err },
		"list the open disks of instance ins-1":            func() error { _, err := d.disks(ctx, id); return err },
		"resume the domain of instance ins-1":              func() error { return d.resume(ctx, id) },
		"destroy the domain of instance ins-1":             func() error { return d.destroy(ctx, id) },
		"undefine the domain of instance ins-1":            func() error { return d.undefine(ctx, id) },
		"query the migration of instance ins-1":            func() error { _, err := d.migration(ctx, id); return err },
		"abort the migration of instance ins-1":            func() error { return d.abortMigration(ctx, id) },
		"discard the incoming migration of instance ins-1": func() error { return d.discardMigration(ctx, id) },
	}
	machines.Fault(func(string, api.InstanceID) error {
		return api.Errorf(api.CodeUnavailable, "libvirtd is not responding")
	})
	for want, call := range calls {
		err := call()
		if err == nil || !strings.HasPrefix(err.Error(), want+": ") {
			t.Errorf("error = %v, want one that begins with %q", err, want)
			continue
		}
		if c := api.CodeOf(err); c != api.CodeUnavailable {
			t.Errorf("%s: code = %s, want %s", want, c, api.CodeUnavailable)
		}
		if m := userMessage(err); m != "libvirtd is not responding" {
			t.Errorf("%s: message for users = %q, want the hypervisor's", want, m)
		}
	}
	machines.Fault(nil)
	if _, err := d.status(ctx, id); err != nil {
		t.Errorf("status without a fault = %v, want no error", err)
	}
}
