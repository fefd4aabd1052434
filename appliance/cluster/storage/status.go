package storage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// diskView is what a disk's status is made from, on its node.
type diskView struct {
	disk  api.Disk // as the cluster knows it
	block *Block   // nil: it is not there
	osd   *OSD     // nil: it is not Ceph's
	found *deploy.Found
	round deploy.Round
	off   bool // there is no Ceph cluster
	begun bool // … it has had no quorum yet
}

// diskStatus says how a disk is.
func diskStatus(node api.NodeID, v diskView) api.DiskStatus {
	st := v.disk.Status // what a disk is is known although it is gone
	st.Node, st.Osd, st.Reason = node, -1, ""
	if b := v.block; b != nil {
		st.Path, st.ByID, st.Model, st.Serial, st.SizeBytes, st.Rotational = b.Path, b.ByID, b.Model, b.Serial, b.SizeBytes, b.Rotational
	}
	if v.osd == nil || v.osd.Leaving == (v.disk.Spec.Use == api.DiskUnused) {
		st.ObservedGeneration = max(v.disk.Meta.Generation, 1)
	}
	switch {
	case v.osd != nil && v.osd.Leaving:
		return leaving(st, v)
	case v.osd != nil:
		return member(st, v)
	}
	return free(st, v)
}

// free says what keeps a disk that is not Ceph's from becoming so.
func free(st api.DiskStatus, v diskView) api.DiskStatus {
	b := v.block
	wanted := v.disk.Spec.Use == api.DiskCeph
	switch {
	case b == nil:
		st.State, st.Reason = api.DiskFailed, "the disk is not there"
	case b.Held != "":
		st.State, st.Reason = api.DiskInUse, b.Held
	case b.Holds != "" && (!wanted || !v.disk.Spec.Wipe):
		st.State, st.Reason = api.DiskInUse, b.Holds+"; all of that is lost with: basalt disk use "+v.disk.Meta.Name+" ceph --wipe"
	case b.Holds != "":
		st.State, st.Reason = api.DiskInUse, b.Holds+", which will be wiped"
	default:
		st.State = api.DiskFree
	}
	if wanted && v.off && st.Reason == "" {
		st.Reason = "Ceph is switched off: basalt ceph enable"
	}
	return st
}

// member of Ceph, or about to be.
func member(st api.DiskStatus, v diskView) api.DiskStatus {
	c := v.round.Seen.Cluster
	st.State = api.DiskPreparing
	if v.osd.Taken {
		st.State = api.DiskFailed
	}
	if v.found == nil {
		st.Reason = "it has not been looked at"
		if v.block != nil && v.block.Held != "" {
			st.State, st.Reason = api.DiskFailed, v.block.Held
		}
		return st
	}
	if v.found.Made {
		st.Osd = int64(v.found.ID)
	}
	err := v.round.Failed[v.osd.UUID]
	switch {
	case v.block == nil:
		st.State, st.Reason = api.DiskFailed, "the disk is not there"
	case refused(v) != "":
		st.State, st.Reason = api.DiskFailed, refused(v)
	case err != nil:
		st.Reason = clip(err.Error())
		if !passing(err) {
			st.State = api.DiskFailed
		}
	case c == nil:
		st.Reason = "the storage cluster does not answer"
		if v.found.Running && v.disk.Status.State == api.DiskReady {
			st.State = api.DiskReady // as far as is known
		}
	case v.found.Made && !v.found.Running:
		st.Reason = "its daemon did not run, and was started"
	case !v.found.Made:
		st.State, st.Reason = api.DiskPreparing, "it is being prepared"
	case osdOf(*c, v.osd.UUID) == nil || !osdOf(*c, v.osd.UUID).Up:
		st.Reason = "its daemon has not come up yet"
	default:
		st.State = api.DiskReady
	}
	return st
}

// leaving Ceph.
func leaving(st api.DiskStatus, v diskView) api.DiskStatus {
	c := v.round.Seen.Cluster
	st.State = api.DiskDraining
	if v.found != nil && v.found.Made {
		st.Osd = int64(v.found.ID)
	}
	switch {
	case v.begun && v.found != nil && !v.found.Made && v.found.UUID != v.osd.UUID:
		return free(st, v)
	case c == nil || v.found == nil:
		st.Reason = "the storage cluster does not answer"
	case osdOf(*c, v.osd.UUID) != nil && osdOf(*c, v.osd.UUID).Safe:
		st.Reason = "its data is on other disks; it is being taken out"
	case osdOf(*c, v.osd.UUID) != nil:
		st.Reason = "its data moves to other disks"
	case v.found.Made || v.found.UUID == v.osd.UUID && v.found.Content != deploy.Other:
		st.Reason = "it is being wiped"
	default:
		return free(st, v)
	}
	return st
}

func refused(v diskView) string {
	for _, a := range v.round.Did {
		if a.Do == deploy.Refuse && a.Name == v.osd.UUID {
			return clip(a.Why)
		}
	}
	return ""
}

// passing errors say nothing about the disk: the monitors were busy or away.
func passing(err error) bool {
	return errors.Is(err, command.ErrTimeout) || command.Is(err, syscall.ETIMEDOUT) || command.Is(err, syscall.EAGAIN)
}

const maxReason = 300

func clip(s string) string {
	s = word(s)
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return s
}

// explain the cluster in its status. err is why there is no survey.
func explain(f Founding, s seen, err error) api.CephClusterStatus {
	c := *s.cluster
	st := api.CephClusterStatus{ObservedGeneration: c.Meta.Generation, Phase: api.CephDeploying, Osds: int64(len(f.OSDs))}
	switch {
	case f.FSID == "" && !c.Spec.Enabled:
		st.Phase, st.Summary = api.CephPending, "switched off"
		return st
	case f.FSID == "":
		st.Phase, st.Summary = api.CephPending, "it is decided which nodes run its monitors"
		return st
	case s.survey == nil && !f.Exists:
		st.Summary = "the first monitor is being made"
		st.Next, st.LastError = trouble(f, s.nodes), clip(text(err))
		return st
	case s.survey == nil:
		st.Health, st.Summary, st.Next = api.CephError, "the monitors do not answer", "see that the nodes that vote run and reach each other"
		st.LastError = clip(text(err))
		if c.Status.Phase != "" {
			st.Phase = c.Status.Phase // volumes go on to belong there
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
		if x := osdOf(v.Cluster, o.UUID); x != nil && x.Up {
			st.OsdsUp++
		}
	}
	made := slices.ContainsFunc(v.Cluster.Pools, func(p deploy.PoolState) bool { return p.Name == Pool && p.Enabled })
	if made && st.OsdsUp > 0 && (c.Status.Phase == api.CephReady || copies(f) >= minimum(f)) {
		st.Phase = api.CephReady
	}
	return advise(st, f, s)
}

// advise puts what Ceph itself cannot know first.
func advise(st api.CephClusterStatus, f Founding, s seen) api.CephClusterStatus {
	have, leave := copies(f), 0
	for _, o := range f.OSDs {
		if o.Leaving {
			leave++
		}
	}
	say := func(summary, next string) api.CephClusterStatus {
		st.Health, st.Summary, st.Next = cmp.Or(worse(st.Health), api.CephWarning), summary, next
		return st
	}
	what := "disks"
	if f.FailureDomain == string(api.DomainHost) {
		what = "nodes with disks"
	}
	switch {
	case !s.cluster.Spec.Enabled && s.images > 0:
		return say(fmt.Sprintf("it is to be switched off, and holds %d volumes and images", s.images), "delete the volumes and images in the pool ceph")
	case !s.cluster.Spec.Enabled:
		st.Phase, st.Health = api.CephDeploying, ""
		st.Summary, st.Next, st.Checks = fmt.Sprintf("it is being taken down: %d disks are still its", len(f.OSDs)), "", nil
		return st
	case have == 0 && leave == 0:
		return say("it has no disks", "see the disks, and give it some: basalt disk list; basalt disk use DISK ceph")
	case have < f.Replicas:
		words := fmt.Sprintf("%d copies are to be on different %s, of which it has %d", f.Replicas, what, have)
		next := "give it more: basalt disk use DISK ceph"
		if leave > 0 {
			next = "a disk that leaves has nowhere to move its data to: give Ceph another one first, or take the decision back"
		}
		return say(words, next)
	case trouble(f, s.nodes) != "" && st.Next == "":
		st.Next = trouble(f, s.nodes)
	}
	return st
}

func worse(h api.CephHealth) api.CephHealth {
	if h == api.CephError {
		return h
	}
	return ""
}

// copies that can be on different disks or nodes.
func copies(f Founding) int {
	domains := map[string]bool{}
	for _, o := range f.OSDs {
		switch {
		case o.Leaving:
		case f.FailureDomain == string(api.DomainOSD):
			domains[o.UUID] = true
		default:
			domains[string(o.Node)] = true
		}
	}
	return len(domains)
}

func minimum(f Founding) int { return deploy.Pool{Replicas: f.Replicas}.MinReplicas() }

// condCeph is the condition in which a node says how its part is.
const condCeph = "Ceph"

// trouble of the first node that has some.
func trouble(f Founding, nodes map[string]api.Node) string {
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		for _, c := range nodes[id].Status.Conditions {
			if c.Type == condCeph && !c.Status && slices.Contains(f.Mons, api.NodeID(id)) {
				return clip("see to node " + nodes[id].Meta.Name + ": " + c.Message)
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
