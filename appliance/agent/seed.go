package agent

import (
	"os"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
)

// writeSeed makes the instance's folder and its cloud-init disc.
func (a *Agent) writeSeed(in api.Instance) error {
	id := api.InstanceID(in.Meta.ID)
	if err := os.MkdirAll(a.filesOf(id), 0o755); err != nil {
		return err
	}
	return a.o.WriteSeed(a.seedPath(id), cloudinit.Seed{
		Instance: id, Hostname: in.Meta.Name, SSHKeys: in.Spec.SSHKeys, UserData: in.Spec.UserData,
	})
}
