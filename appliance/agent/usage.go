package agent

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

func (a *Agent) meter(ctx context.Context)                                { <-ctx.Done() }
func (a *Agent) meterInstance(ctx context.Context, in api.Instance) error { return nil }
func (a *Agent) meterVolume(ctx context.Context, v api.Volume) error      { return nil }
