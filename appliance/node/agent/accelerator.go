package agent

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// accelerated is how machines run that are started from now on.
type accelerated struct {
	how hypervisor.Accelerator // empty: not known yet
	why error                  // it is not known
}

// SetAccelerator changes how machines run that are started from now on, and what
// the node's status says of it.
func (a *Agent) SetAccelerator(x hypervisor.Accelerator) { a.accelerator.Store(accelerated{how: x}) }

// NoAccelerator says that no machine starts here now, and why. What runs goes on.
func (a *Agent) NoAccelerator(why error) { a.accelerator.Store(accelerated{why: why}) }

func (a *Agent) howMachinesRun() hypervisor.Accelerator {
	return a.accelerator.Load().(accelerated).how
}

// machinesStart returns why no machine can be started here whatever the
// hypervisor says, or nil.
func (a *Agent) machinesStart() error {
	x := a.accelerator.Load().(accelerated)
	switch {
	case x.why != nil:
		return x.why
	case x.how == "":
		return api.Errorf(api.CodeUnavailable, "how machines run on this node is still being found out").WithHint("it takes some minutes at most")
	}
	return nil
}
