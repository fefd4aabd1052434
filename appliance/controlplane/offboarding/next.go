package offboarding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// steps are the kinds of a service's objects that are deleted together, in order.
var steps = [][]api.Kind{
	{api.KindLoadBalancer, api.KindFloatingIP, api.KindBackup, api.KindAPIKey, api.KindGroup, api.KindUser, api.KindSession, api.KindWebhook, api.KindInstance},
	{api.KindSnapshot, api.KindSSHGuest},
	{api.KindVolume, api.KindImage},
	{api.KindNetwork, api.KindSecurityGroup},
	{api.KindProject},
}

// kinds are the kinds of all steps.
var kinds = slices.Concat(steps...)

// maxCommands is the most commands in one batch, to keep log entries small.
const maxCommands = 200

// Next returns the next commands for an ended service that has the given objects: the
// deletions, and the status.
func Next(s api.Service, has []api.Object) []api.Command {
	if cmds, left := deletions(steps, has); len(left) > 0 {
		return append(cmds, statusCommand(s, api.ServiceStatus{Phase: api.ServiceTerminating, Reason: describe(left)})...)
	}
	return statusCommand(s, api.ServiceStatus{Phase: api.ServiceTerminated})
}

// deletions returns the commands of the first step that has objects, and those objects,
// some of which may already be deleted.
func deletions(steps [][]api.Kind, has []api.Object) (cmds []api.Command, left []api.Object) {
	for _, step := range steps {
		for _, o := range has {
			if slices.Contains(step, o.Kind) {
				left = append(left, o)
			}
		}
		if len(left) == 0 {
			continue
		}
		for _, o := range left {
			if len(cmds) >= maxCommands {
				break
			}
			if o.Meta.DeletedAt == nil {
				cmds = append(cmds, detachVolumes(o, has)...)
				cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: o.Kind, ID: o.Meta.ID, Expect: api.AnyRevision,
					// Clones are deleted next; security groups that refer to one another may
					// be in different batches.
					Cascade: o.Kind == api.KindSnapshot || o.Kind == api.KindSecurityGroup})
			}
		}
		return cmds, left
	}
	return nil, nil
}

// detachVolumes detaches an instance's data volumes, as deleting it manually does: its agent
// then closes them.
func detachVolumes(o api.Object, has []api.Object) []api.Command {
	var cmds []api.Command
	for _, x := range has {
		if o.Kind != api.KindInstance || x.Kind != api.KindVolume || x.Meta.DeletedAt != nil {
			continue
		}
		v, err := api.Decode[api.Volume](x)
		if err != nil || v.Spec.Root || string(v.Spec.Instance) != o.Meta.ID {
			continue
		}
		v.Spec.Instance = ""
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: v.Meta.ID, Expect: v.Meta.Revision,
			Labels: v.Meta.Labels, Data: api.Encode(v.Spec)})
	}
	return cmds
}

// statusCommand returns the command that reports a changed status.
func statusCommand(s api.Service, now api.ServiceStatus) []api.Command {
	if s.Status.Phase == now.Phase && s.Status.Reason == now.Reason {
		return nil
	}
	return []api.Command{{Op: api.OpReport, Kind: api.KindService, ID: s.Meta.ID, Expect: s.Meta.Revision, Data: api.Encode(now)}}
}

// describe lists what is left: "2 Instance, 1 Volume: being deleted".
func describe(left []api.Object) string {
	count := map[api.Kind]int{}
	for _, o := range left {
		count[o.Kind]++
	}
	var parts []string
	for _, kind := range kinds {
		if n := count[kind]; n > 0 {
			what := string(kind)
			if kind == api.KindSSHGuest { // an internal kind
				what = "SSH host key"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	return strings.Join(parts, ", ") + ": being deleted"
}
