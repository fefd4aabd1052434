package storage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// explain returns the cluster's status. err is the reason why there is no survey.
func explain(f Bootstrap, s observation, err error) api.CephClusterStatus {
	c := *s.cluster
	st := api.CephClusterStatus{ObservedGeneration: c.Meta.Generation, Phase: api.CephDeploying, Osds: int64(len(f.OSDs))}
	switch {
	case f.FSID == "" && !c.Spec.Enabled:
		st.Phase, st.Summary = api.CephPending, "not enabled"
		return st
	case f.FSID == "":
		st.Phase, st.Summary = api.CephPending, "choosing the nodes that run its monitors"
		return st
	case s.survey == nil && !f.Exists:
		st.Summary = "the first monitor is being created"
		st.Next, st.LastError = trouble(f, s.nodes), Reason(text(err))
		return st
	case s.survey == nil:
		st.Health, st.Summary, st.Next = api.CephError, "the monitors are not reachable", "check that the voting nodes are running and can reach each other"
		st.LastError = Reason(text(err))
		if c.Status.Phase != "" {
			st.Phase = c.Status.Phase // volumes still belong there
		}
		return st
	}
	v := *s.survey
	st.Health, st.Summary, st.Next = api.CephHealth(v.Health.Level), v.Health.Summary, v.Health.Next
	st.SizeBytes, st.UsedBytes = v.SizeBytes, v.UsedBytes
	for _, k := range v.Health.Checks {
		st.Checks = append(st.Checks, api.CephCheck{Name: k.Code, Severity: api.CephHealth(k.Level), Summary: k.Summary})
	}
	for _, o := range f.OSDs {
		if x := OSDOf(v.Cluster, o.UUID); x != nil && x.Up {
			st.OsdsUp++
		}
	}
	created := slices.ContainsFunc(v.Cluster.Pools, func(p deploy.PoolState) bool { return p.Name == Pool && p.Enabled })
	if created && st.OsdsUp > 0 && (c.Status.Phase == api.CephReady || copies(f, s, f.Class) >= minimum(f)) {
		st.Phase = api.CephReady
	}
	for _, p := range f.AllPools() {
		st.Pools = append(st.Pools, poolStatus(f, s, p))
	}
	return advise(st, f, s)
}

// advise replaces Ceph's own advice with problems that Ceph itself cannot know of.
func advise(st api.CephClusterStatus, f Bootstrap, s observation) api.CephClusterStatus {
	have, leaving := copies(f, s, f.Class), 0
	for _, o := range f.OSDs {
		if o.Leaving {
			leaving++
		}
	}
	warn := func(summary, next string) api.CephClusterStatus {
		st.Health, st.Summary, st.Next = cmp.Or(worse(st.Health), api.CephWarning), summary, next
		return st
	}
	switch {
	case !s.cluster.Spec.Enabled && s.contents() > 0:
		return warn(fmt.Sprintf("it cannot be disabled: it contains %d volumes and images", s.contents()), "delete the volumes and images in Ceph")
	case !s.cluster.Spec.Enabled:
		st.Phase, st.Health = api.CephDeploying, ""
		st.Summary, st.Next, st.Checks = fmt.Sprintf("it is being removed: %d disks are left", len(f.OSDs)), "", nil
		return st
	case have == 0 && leaving == 0 && f.Class == "":
		return warn("it has no disks", "list the disks and add some: basalt disk list; basalt disk use DISK ceph")
	case have < f.Replicas:
		summary := fmt.Sprintf("it has %d %s, want at least %d for as many copies", have, domainWords(f, f.Class), f.Replicas)
		next := "add more: basalt disk use DISK ceph"
		if leaving > 0 {
			next = "the data of the disk being released does not fit on the others: add another disk first, or cancel the release"
		}
		return warn(summary, next)
	case poolProblem(st) != "" && st.Health != api.CephError:
		return warn(poolProblem(st), "add disks of that device class: basalt disk use DISK ceph --device-class CLASS")
	case trouble(f, s.nodes) != "" && st.Next == "":
		st.Next = trouble(f, s.nodes)
	}
	return st
}

// poolProblem returns which pool cannot store all its copies, or an empty string.
func poolProblem(st api.CephClusterStatus) string {
	for _, p := range st.Pools {
		if p.Domains < p.Replicas && p.Reason != "" {
			return "pool " + p.Name + " has " + p.Reason
		}
	}
	return ""
}

func worse(h api.CephHealth) api.CephHealth {
	if h == api.CephError {
		return h
	}
	return ""
}

func minimum(f Bootstrap) int { return deploy.Pool{Replicas: f.Replicas}.MinReplicas() }

// condCeph is the type of the condition in which a node reports the state of its
// monitor.
const condCeph = "Ceph"

// trouble returns the Ceph problem of the first node that reports one, or an empty
// string.
func trouble(f Bootstrap, nodes map[string]api.Node) string {
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		for _, c := range nodes[id].Status.Conditions {
			if c.Type == condCeph && !c.Status && slices.Contains(f.Mons, api.NodeID(id)) {
				return Reason("check node " + nodes[id].Meta.Name + ": " + c.Message)
			}
		}
	}
	return ""
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
