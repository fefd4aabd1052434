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
	log, err := a.o.Machines.ConsoleLog(ctx, id, max)
	return log, wrap(err, "read the console log of instance %s", id)
}

// Console opens the instance's serial console, which has one user at a time. The
// caller closes it.
func (a *Agent) Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error) {
	if err := a.here(id); err != nil {
		return nil, err
	}
	c, err := a.o.Machines.Console(ctx, id)
	return c, wrap(err, "connect to the console of instance %s", id)
}

// Screen opens a VNC connection to the instance's screen. The caller closes it.
func (a *Agent) Screen(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error) {
	if err := a.here(id); err != nil {
		return nil, err
	}
	c, err := a.o.Machines.Screen(ctx, id)
	return c, wrap(err, "connect to the screen of instance %s", id)
}

// Exec runs a program in the instance through its guest agent.
func (a *Agent) Exec(ctx context.Context, id api.InstanceID, e hypervisor.Exec) (hypervisor.ExecResult, error) {
	if err := a.here(id); err != nil {
		return hypervisor.ExecResult{}, err
	}
	out, err := a.o.Machines.AgentExec(ctx, id, e)
	return out, wrap(err, "run a program in instance %s", id)
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
