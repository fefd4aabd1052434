package server

import (
	"context"
	"fmt"
	"sort"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/alerts"
)

// maxAlertToken limits a page token, in bytes; those of the server are shorter.
const maxAlertToken = 512

// ListAlerts pages through the current alerts. A page continues after the sort position
// of the last alert of the previous one, whether that alert still exists or not.
func (h *handlers) ListAlerts(ctx context.Context, r in[api.ListAlertsParams, none]) (*api.AlertList, error) {
	limit := r.Params.Limit
	if limit == 0 {
		limit = maxLimit
	}
	if limit < 1 || limit > maxLimit {
		return nil, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxLimit).At("limit")
	}
	if len(r.Params.Continue) > maxAlertToken {
		return nil, api.Errorf(api.CodeInvalid, "is not a token from a previous page").At("continue")
	}
	l, err := h.alerts.evaluate(ctx, h.opts.Now, h.whole)
	if err != nil {
		return nil, err
	}
	all := l.found
	out := api.AlertList{Items: []api.Alert{}, AsOf: l.at.UTC()}
	for _, a := range all {
		if a.Severity == api.AlertCritical {
			out.Critical++
		} else {
			out.Warning++
		}
	}
	if after := r.Params.Continue; after != "" {
		all = all[sort.Search(len(all), func(i int) bool { return alerts.Key(all[i]) > after }):]
	}
	if len(all) > limit {
		all = all[:limit]
		out.Continue = alerts.Key(all[limit-1])
	}
	out.Items = append(out.Items, all...)
	return &out, nil
}

// Alerts returns the current alerts, for notifying operators. The caller must not
// modify them.
func (s *Server) Alerts(ctx context.Context) ([]api.Alert, error) {
	l, err := s.alerts.evaluate(ctx, s.opts.Now, (&handlers{s}).whole)
	return l.found, err
}

const (
	// alertsAge is how old an answer may be in a large cluster, where evaluating the
	// alerts is costly: half a second of CPU time with 20,000 instances
	// (BenchmarkAlerts).
	alertsAge = 10 * time.Second
	// manyInstances is the number of instances from which a cluster counts as large. In
	// a smaller one every answer is new.
	manyInstances = 500
)

// alertCache shares evaluations of the whole cluster between requests. Only one runs at
// a time; requests that arrive meanwhile, or soon afterwards, get the same result.
type alertCache struct {
	turn  chan struct{} // holds a token while an evaluation runs; guards last
	begun atomic.Int64  // number of evaluations begun
	last  evaluation
}

type evaluation struct {
	found []api.Alert // sorted, never modified
	at    time.Time   // start of the evaluation
	nth   int64       // value of begun at its start; 0: no evaluation yet
	many  bool
}

// serves reports whether the result may be used for a request that arrived at now, when
// the given number of evaluations had begun.
func (l evaluation) serves(now time.Time, begun int64) bool {
	age := now.Sub(l.at)
	return l.nth > begun || l.nth > 0 && l.many && age >= 0 && age < alertsAge
}

func (c *alertCache) evaluate(ctx context.Context, now func() time.Time, read func(context.Context) (alerts.State, error)) (evaluation, error) {
	begun := c.begun.Load()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return evaluation{}, ctx.Err()
	}
	if c.last.serves(now(), begun) {
		return c.last, nil
	}
	l := evaluation{at: now(), nth: c.begun.Add(1)}
	s, err := read(ctx)
	if err != nil {
		return l, err
	}
	l.found, l.many = alerts.Of(s, l.at), len(s.Instances) >= manyInstances
	c.last = l
	return l, nil
}

// whole reads all objects that alerts depend on.
func (h *handlers) whole(ctx context.Context) (alerts.State, error) {
	var s alerts.State
	for _, err := range []error{
		readAll(ctx, h, api.KindNode, &s.Nodes), readAll(ctx, h, api.KindGPU, &s.GPUs), readAll(ctx, h, api.KindGPUPool, &s.Pools),
		readAll(ctx, h, api.KindInstance, &s.Instances), readAll(ctx, h, api.KindImage, &s.Images), readAll(ctx, h, api.KindDisk, &s.Disks),
		readAll(ctx, h, api.KindCephCluster, &s.Ceph), readAll(ctx, h, api.KindBackupTarget, &s.Targets), readAll(ctx, h, api.KindBackup, &s.Backups),
		readAll(ctx, h, api.KindExternalNetwork, &s.External), readAll(ctx, h, api.KindNetwork, &s.Networks), readAll(ctx, h, api.KindRouter, &s.Routers),
		readAll(ctx, h, api.KindWebhook, &s.Webhooks), readAll(ctx, h, api.KindMailSettings, &s.Mail), readAll(ctx, h, api.KindPaymentSettings, &s.Payments),
		readAll(ctx, h, api.KindDispute, &s.Disputes), readAll(ctx, h, api.KindMailSuppression, &s.Suppressions),
		readAll(ctx, h, api.KindTaxSettings, &s.Taxes), readAll(ctx, h, api.KindVATCheck, &s.VATChecks),
		readAll(ctx, h, api.KindOrganization, &s.Organizations),
		readAll(ctx, h, api.KindAuditCheck, &s.Audit),
		readAll(ctx, h, api.KindUpgrade, &s.Upgrades),
	} {
		if err != nil {
			return s, err
		}
	}
	if h.opts.Cluster == nil {
		return s, nil
	}
	c, err := h.opts.Cluster.Cluster(ctx)
	s.Members = c.Members
	if err != nil {
		return s, fmt.Errorf("read the members of the cluster: %w", err)
	}
	return s, nil
}

// readAll reads all objects of a kind in the cluster.
func readAll[T any](ctx context.Context, h *handlers, kind api.Kind, into *[]T) (err error) {
	*into, err = api.All[T](ctx, h.opts.Store, api.ListQuery{Kind: kind})
	return err
}
