package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// machineClasses decides what an instance's virtual machine is like, at the start of a
// run, so that it can move to other nodes; and checks that this node can make what
// another node has decided. docs/machine-classes.md says what is decided and why.
type machineClasses struct{ *core }

// choose what the instance's machine is like in the run that begins.
func (c *machineClasses) choose(ctx context.Context, in api.Instance) (api.InstanceMachine, error) {
	have, err := c.o.Machines.Abilities(ctx)
	if err != nil {
		return api.InstanceMachine{}, fmt.Errorf("ask what machines can be made here: %w", err)
	}
	m := in.Status.Machine
	if m.Type == "" {
		m.Type = machineType(have.Machines, c.cache.otherNodes())
	}
	return m, knows(have.Machines, m.Type)
}

// check that this node can go on with an instance that runs on another.
func (c *machineClasses) check(ctx context.Context, in api.Instance) error {
	have, err := c.o.Machines.Abilities(ctx)
	if err != nil {
		return fmt.Errorf("ask what machines can be made here: %w", err)
	}
	return knows(have.Machines, in.Status.Machine.Type)
}

// machineType is the newest type that this node and all others have, so that the
// instance can run on each of them; or the newest of this node's, if there is none.
// Nodes that do not say what they have do not count. Empty: this node has none.
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

func knows(types []string, t string) error {
	if t == "" || len(types) == 0 || slices.Contains(types, t) {
		return nil
	}
	return api.Errorf(api.CodeState, "QEMU on this node has no machine type %s; it has %s", t, strings.Join(types[:min(len(types), 3)], ", ")).
		WithHint("run the instance on a node with a QEMU that has it")
}
