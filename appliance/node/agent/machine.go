package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// machineClasses decides, at the start of a run, the machine type, CPU and network
// queues of an instance's virtual machine, so that it can be migrated to other
// nodes; and it checks that this node supports what another node has decided.
// docs/machine-classes.md has the rules and the reasons.
type machineClasses struct {
	*core
	accelerator *acceleration
}

// choose decides the instance's machine for the run that begins.
func (c *machineClasses) choose(ctx context.Context, in api.Instance) (api.InstanceMachine, error) {
	have, err := c.domain.abilities(ctx)
	if err != nil {
		return api.InstanceMachine{}, err
	}
	m := in.Status.Machine
	if m.Type == "" {
		m.Type = machineType(have.Machines, c.cache.otherNodes())
	}
	if err := knows(have.Machines, m.Type); err != nil {
		return m, err
	}
	m.NICQueues = nicQueues(in.Assignment.Vcpus, c.cache.otherNodes())
	m.CPU, err = c.chooseCPU(ctx, in.Spec.CPU, have.CPU)
	return m, err
}

// chooseCPU decides the CPU of a run: what the cluster's nodes have in common,
// unless the host's CPU is asked for or there is nothing in common.
func (c *machineClasses) chooseCPU(ctx context.Context, asked api.CPUClass, own hypervisor.CPU) (api.InstanceCPU, error) {
	switch {
	case c.accelerator.how() != hypervisor.KVM:
		return api.InstanceCPU{Class: api.CPUEmulated}, nil
	case asked == api.CPUHost || own.Model == "":
		return api.InstanceCPU{Class: api.CPUHost, CPU: own.API()}, nil
	}
	best := own
	if of := differing(own, c.cache.otherNodes()); len(of) > 1 {
		common, err := c.o.Machines.BaselineCPU(ctx, of)
		switch {
		case api.CodeOf(err) == api.CodeInvalid: // it can be migrated to nodes whose processor has everything that this one has
			c.log.Warn("the processors of the nodes have no common baseline", "error", err)
		case err != nil:
			return api.InstanceCPU{}, fmt.Errorf("find what the processors of %d kinds of nodes have in common: %w", len(of), err)
		default:
			best = common
		}
	}
	return api.InstanceCPU{Class: api.CPUBaseline, CPU: best.API()}, nil
}

// differing returns this node's CPU, and those of the other nodes that differ from
// it and from each other.
func differing(own hypervisor.CPU, others []api.Node) []hypervisor.CPU {
	all := []hypervisor.CPU{own}
	for _, n := range others {
		cpu := n.Status.Machines.CPU
		if cpu.Model != "" && !slices.ContainsFunc(all, func(k hypervisor.CPU) bool { return k.API().Equal(cpu) }) {
			all = append(all, hypervisor.CPUOf(cpu))
		}
	}
	return all
}

// check returns an error unless this node can continue an instance that runs on
// another.
func (c *machineClasses) check(ctx context.Context, in api.Instance) error {
	have, err := c.domain.abilities(ctx)
	if err != nil {
		return err
	}
	if err := knows(have.Machines, in.Status.Machine.Type); err != nil {
		return err
	}
	self := api.Node{Status: api.NodeStatus{Accelerator: string(c.accelerator.how()), Machines: api.NodeMachines{Types: have.Machines}}}
	if c.accelerator.how() == hypervisor.KVM {
		self.Status.Machines.CPU = have.CPU.API()
	}
	cpu := in.Status.Machine.CPU
	if why := self.IncompatibleCPU(cpu); why != "" {
		return api.Errorf(api.CodeState, "the instance cannot run here with its processor: %s", why)
	}
	if cpu.Class != api.CPUBaseline {
		return nil
	}
	return wrap(c.o.Machines.CheckCPU(ctx, hypervisor.CPUOf(cpu.CPU)), "check whether this node supports the processor of instance %s", in.Meta.ID)
}

// machineType returns the newest machine type that this node and all others have,
// so that the instance can run on each of them; if there is none, the newest of
// this node. Nodes that report no types are left out. It returns "" if this node
// has none.
func machineType(own []string, others []api.Node) string {
	for _, t := range own {
		if !slices.ContainsFunc(others, func(n api.Node) bool {
			return len(n.Status.Machines.Types) > 0 && !slices.Contains(n.Status.Machines.Types, t)
		}) {
			return t
		}
	}
	if len(own) == 0 {
		return ""
	}
	return own[0]
}

// nicQueues returns the number of queues of a network card: one for each vCPU,
// limited to what all nodes support, so that the instance can be migrated to each
// of them. 0 means a card without multiple queues.
func nicQueues(vcpus int64, others []api.Node) int64 {
	n := min(vcpus, hypervisor.MaxNICQueues)
	for _, o := range others {
		n = min(n, o.Status.Machines.NICQueues)
	}
	if n <= 1 { // a single queue needs no multi-queue card
		return 0
	}
	return n
}

func knows(types []string, t string) error {
	if t == "" || len(types) == 0 || slices.Contains(types, t) {
		return nil
	}
	return api.Errorf(api.CodeState, "QEMU on this node has no machine type %s; it has %s", t, strings.Join(types[:min(len(types), 3)], ", ")).
		WithHint("run the instance on a node with a QEMU that has it")
}
