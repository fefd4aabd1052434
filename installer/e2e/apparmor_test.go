package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/apparmor"
)

// withGPU has the node load the profiles, offer a soft GPU, and accept instances although it is emulated
// itself. The rule in local/basalt-image has the kernel log each qemu-img that runs under the
// profile.
const withGPU = `set -e
echo 'GPUD_OPTIONS="--soft-gpu name=soft0,vram=128MiB,sms=1"' >>/etc/default/basalt-gpud
echo 'allow-emulation: true' >>/etc/basalt/basaltd.yaml
systemctl enable --quiet basalt-apparmor
echo 'audit /usr/bin/qemu-img mr,' >/etc/apparmor.d/local/basalt-image
systemctl restart basalt-apparmor basalt-gpud basaltd`

// confined checks that programs which handle hostile input run under their AppArmor
// profiles, and that those allow what they need: qemu-img examines a user's image, and an
// instance has a virtual GPU. It is the last test of a start, since it reads the whole log.
func (c *computer) confined(t *testing.T, p *power) {
	t.Helper()
	c.ssh(t, withGPU)
	modes := apparmor.Modes(c.ssh(t, "cat "+apparmor.Loaded))
	for _, name := range apparmor.Profiles() {
		if modes[name] != apparmor.Enforced {
			t.Errorf("mode of profile %s on the node = %q, want %s", name, modes[name], apparmor.Enforced)
		}
	}
	p.poll("the API, with a GPU", c.healthy)
	basalt := func(args string) { c.ssh(t, "BASALT_TOKEN=$(cat /var/lib/basalt/operator.key) basalt "+args) }
	c.ssh(t, "qemu-img create -q -f qcow2 /root/small.qcow2 64M") // nobody waits for its system
	basalt("apply -f - <<'EOF'\n" + project + "EOF")
	basalt("image import small --file /root/small.qcow2 --public --wait")
	if out := c.logged(t, "AUDIT"); !strings.Contains(out, `profile="basalt-image" name="/usr/bin/qemu-img"`) {
		t.Errorf("the kernel has logged %q, want a qemu-img under the profile basalt-image", out)
	}
	basalt("instance create one --project web --flavor tiny --image small --vram 64MiB --wait --timeout 15m")
	p.poll("a vGPU under its profile", func(ctx context.Context) error {
		out, err := c.try(ctx, "cat /proc/$(pgrep -x basalt-vgpu)/attr/current")
		if want := fmt.Sprintf("%s (%s)", apparmor.VGPU, apparmor.Enforced); err == nil && out != want {
			err = errors.New("it runs under " + out)
		}
		return err
	})
	basalt("instance delete one --project web --wait --timeout 15m")
	if out := c.logged(t, "DENIED"); out != "" {
		t.Errorf("AppArmor has denied, want nothing:\n%s", out)
	}
}

// logged returns what the kernel has logged of Basalt's profiles: AUDIT or DENIED.
func (c *computer) logged(t *testing.T, kind string) string {
	t.Helper()
	var ours []string
	for line := range strings.Lines(c.ssh(t, "journalctl -b --no-pager --output=cat --grep 'apparmor=\""+kind+"\"' || true")) {
		if strings.Contains(line, `profile="basalt-`) {
			ours = append(ours, strings.TrimSpace(line))
		}
	}
	return strings.Join(ours, "\n")
}
