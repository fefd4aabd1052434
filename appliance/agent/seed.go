package agent

import "github.com/basalt-gpu/basalt/api"

func (a *Agent) writeSeed(in api.Instance) error { return nil }
