// Package alerts lists the problems of a cluster. It is a pure function of the
// cluster's objects and the time, without state of its own: an alert disappears when
// its cause does, and the same objects give the same alerts on every node, in the same
// order.
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

// State is the objects that alerts are derived from.
type State struct {
	Nodes         []api.Node
	Members       []api.Member // empty: a node without a cluster
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
	Mail          []api.StoredMailSettings    // the settings, and the status of sending
	Payments      []api.StoredPaymentSettings // likewise
	Disputes      []api.Dispute
	Suppressions  []api.MailSuppression
	Taxes         []api.StoredTaxSettings
	VATChecks     []api.VATCheck
	Organizations []api.Organization
	Audit         []api.AuditCheck // empty: the audit log was never verified
	Upgrades      []api.Upgrade
}

// Of returns the alerts of a state, in descending order of severity, then by code and
// ID.
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

// Key returns the sort key of an alert, which is stable while the alert exists.
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

// about is the object of an alert.
type about struct {
	kind api.Kind
	meta api.Meta
}

// message is what an alert says: words, the values in them, and the reason, which is from
// the component that noticed the problem.
type message struct {
	words  string
	params api.AlertParams
	reason string
	cause  api.Cause
}

func says(words string) message { return message{words: words} }

// with returns the message with the values in its words.
func (m message) with(params api.AlertParams) message {
	m.params = params
	return m
}

// because returns the message with a reason; empty: there is none.
func (m message) because(reason string) message {
	m.reason = reason
	return m
}

// of returns the message with the cause of its reason.
func (m message) of(cause api.Cause) message {
	m.cause = cause
	return m
}

func (m message) text() string {
	if m.reason == "" {
		return m.words
	}
	return m.words + ": " + m.reason
}

func (l *list) add(code api.AlertCode, how api.AlertSeverity, what about, since *time.Time, m message, hint string) {
	a := api.Alert{Code: code, Severity: how, Kind: what.kind, ID: what.meta.ID, Name: what.meta.Name, Organization: what.meta.Organization,
		Message: m.text(), Hint: hint, Params: m.params, Reason: m.reason, Cause: m.cause}
	if since != nil && !since.IsZero() {
		at := since.UTC().Truncate(time.Second)
		a.Since = &at
	}
	l.all = append(l.all, a)
}

func (l *list) critical(code api.AlertCode, what about, since *time.Time, m message, hint string) {
	l.add(code, api.AlertCritical, what, since, m, hint)
}

func (l *list) warning(code api.AlertCode, what about, since *time.Time, m message, hint string) {
	l.add(code, api.AlertWarning, what, since, m, hint)
}

// plural returns the number with a noun whose plural ends with s.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
