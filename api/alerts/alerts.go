// Package alerts lists what is wrong with a cluster: a pure function of its
// objects and the time. Nothing is kept: what is over is not there any more, and
// the same objects give the same alerts on every node, in the same order.
//
// Each file is about one part of the cluster; docs/alerts.md lists the codes.
package alerts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// State is what is looked at.
type State struct {
	Nodes         []api.Node
	Members       []api.Member // none: a node that is alone
	GPUs          []api.GPU
	Pools         []api.GPUPool
	Instances     []api.Instance
	Images        []api.Image
	Disks         []api.Disk
	Ceph          []api.CephCluster
	Targets       []api.BackupTarget
	Backups       []api.Backup
	External      []api.ExternalNetwork
	Networks      []api.Network
	Routers       []api.Router
	Webhooks      []api.Webhook
	Mail          []api.StoredMailSettings    // the settings, and how sending goes
	Payments      []api.StoredPaymentSettings // likewise
	Organizations []api.Organization
	Audit         []api.AuditCheck // none: the trail was never verified
	Upgrades      []api.Upgrade
}

// Of a state, the worst first; among those as bad, in the order of their codes
// and ids.
func Of(s State, now time.Time) []api.Alert {
	l := &list{now: now}
	l.nodes(s)
	l.members(s)
	l.upgrades(s)
	l.gpus(s)
	l.storage(s)
	l.networks(s)
	l.work(s)
	l.outside(s)
	l.audit(s)
	slices.SortFunc(l.all, func(a, b api.Alert) int { return cmp.Compare(Key(a), Key(b)) })
	return l.all
}

// Key is an alert's place in the order, and the same as long as it is there.
func Key(a api.Alert) string {
	rank := "1"
	if a.Severity == api.AlertCritical {
		rank = "0"
	}
	return rank + "/" + string(a.Code) + "/" + string(a.Kind) + "/" + a.ID + "/" + a.Name
}

type list struct {
	now time.Time
	all []api.Alert
}

// about is what an alert is about.
type about struct {
	kind api.Kind
	meta api.Meta
}

func (l *list) add(code api.AlertCode, how api.AlertSeverity, what about, since *time.Time, message, hint string) {
	a := api.Alert{Code: code, Severity: how, Kind: what.kind, ID: what.meta.ID, Name: what.meta.Name, Organization: what.meta.Organization,
		Message: message, Hint: hint}
	if since != nil && !since.IsZero() {
		at := since.UTC().Truncate(time.Second)
		a.Since = &at
	}
	l.all = append(l.all, a)
}

func (l *list) critical(code api.AlertCode, what about, since *time.Time, message, hint string) {
	l.add(code, api.AlertCritical, what, since, message, hint)
}

func (l *list) warning(code api.AlertCode, what about, since *time.Time, message, hint string) {
	l.add(code, api.AlertWarning, what, since, message, hint)
}

// because is a reason after a colon, or nothing.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// plural of a noun that takes an s.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
