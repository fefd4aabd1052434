package agent

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// ConsoleLog returns the end of the serial console's log, at most max bytes.
func (a *Agent) ConsoleLog(ctx context.Context, id api.InstanceID, max int64) ([]byte, error) {
	if err := a.here(id); err != nil {
		return nil, err
	}
	return a.o.Machines.ConsoleLog(ctx, id, max)
}

// Console opens the instance's serial console, which has one user at a time. The
// caller closes it.
func (a *Agent) Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error) {
	if err := a.here(id); err != nil {
		return nil, err
	}
	return a.o.Machines.Console(ctx, id)
}

// Screen opens a VNC connection to the instance's screen. The caller closes it.
func (a *Agent) Screen(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error) {
	if err := a.here(id); err != nil {
		return nil, err
	}
	return a.o.Machines.Screen(ctx, id)
}

// Exec runs a program in the instance through its guest agent.
func (a *Agent) Exec(ctx context.Context, id api.InstanceID, e hypervisor.Exec) (hypervisor.ExecResult, error) {
	if err := a.here(id); err != nil {
		return hypervisor.ExecResult{}, err
	}
	return a.o.Machines.AgentExec(ctx, id, e)
}

func (co *core) here(id api.InstanceID) error {
	in, ok := get(co.cache, co.cache.instances, string(id))
	if !ok {
		return api.Errorf(api.CodeState, "the instance is not placed on a node yet").WithHint("wait until it is Running")
	}
	if in.Status.Phase == api.InstancePending || in.Status.Phase == api.InstanceCreating {
		return api.Errorf(api.CodeState, "the instance is %s, want Running", in.Status.Phase).WithHint("wait until it is Running")
	}
	return nil
}
