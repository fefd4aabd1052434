package agent

import "github.com/basalt-gpu/basalt/hypervisor"

// SetAccelerator changes how machines run that are started from now on, and what
// the node's status says of it.
func (a *Agent) SetAccelerator(x hypervisor.Accelerator) { a.accelerator.Store(x) }

func (a *Agent) howMachinesRun() hypervisor.Accelerator {
	return a.accelerator.Load().(hypervisor.Accelerator)
}
