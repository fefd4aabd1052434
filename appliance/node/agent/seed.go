package agent

import (
	"context"
	"os"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
)

// writeSeed creates the instance's directory and its cloud-init disc.
func (f *instanceFiles) writeSeed(ctx context.Context, in api.Instance) error {
	id := api.InstanceID(in.Meta.ID)
	if err := os.MkdirAll(f.dir(id), 0o755); err != nil {
		return err
	}
	nics := make([]cloudinit.NIC, 0, len(in.Assignment.Ports))
	for _, p := range in.Assignment.Ports {
		nics = append(nics, cloudinit.NIC{MAC: p.Mac, IPv4: p.Address4 != "", IPv6: p.Address6 != ""})
	}
	var authority string
	if f.o.SSHAuthority != nil {
		var err error
		if authority, err = f.o.SSHAuthority(ctx); err != nil {
			return err
		}
	}
	return f.o.WriteSeed(f.seedPath(id), cloudinit.Seed{
		Instance: id, Hostname: in.Meta.Name, SSHKeys: in.Spec.SSHKeys, Authority: authority, UserData: in.Spec.UserData, NICs: nics,
	})
}
