package agent

import (
	"os"

	"github.com/basalt-gpu/basalt/api"
)

func (a *Agent) writeSeed(in api.Instance) error {
	id := api.InstanceID(in.Meta.ID)
	if err := os.MkdirAll(a.filesOf(id), 0o755); err != nil {
		return err
	}
	return os.WriteFile(a.seedPath(id), nil, 0o600)
}
