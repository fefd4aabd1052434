package server

import (
	"context"
	"sort"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/alerts"
)

// maxAlertToken is longer than any that a page has.
const maxAlertToken = 512

// ListAlerts pages through what is wrong now. A page goes on after its last
// alert's place in the order, whether that alert is still there or not.
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
	l, err := h.alerts.look(ctx, h.opts.Now, h.whole)
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

// Alerts are what is wrong now, for who tells operators of it; not to be changed.
func (s *Server) Alerts(ctx context.Context) ([]api.Alert, error) {
	l, err := s.alerts.look(ctx, s.opts.Now, (&handlers{s}).whole)
	return l.found, err
}

const (
	// alertsAge is how old an answer may be where looking costs much: at 20,000
	// instances half a second of a processor (BenchmarkAlerts).
	alertsAge = 10 * time.Second
	// manyInstances is from where on it does. Below, every answer is new.
	manyInstances = 500
)

// alertBoard is the last look at the whole cluster. Whoever asks looks, one at a
// time; who asks meanwhile, or soon after, is answered with the same.
type alertBoard struct {
	turn  chan struct{} // holds one while somebody looks; guards last
	begun atomic.Int64  // looks
	last  look
}

type look struct {
	found []api.Alert // sorted, and never changed
	at    time.Time   // when it began
	nth   int64       // of begun; 0: there was none
	many  bool
}

// serves reports whether a look is good enough for who came at now, when so many
// had begun.
func (l look) serves(now time.Time, begun int64) bool {
	age := now.Sub(l.at)
	return l.nth > begun || l.nth > 0 && l.many && age >= 0 && age < alertsAge
}

func (b *alertBoard) look(ctx context.Context, now func() time.Time, read func(context.Context) (alerts.State, error)) (look, error) {
	begun := b.begun.Load()
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return look{}, ctx.Err()
	}
	if b.last.serves(now(), begun) {
		return b.last, nil
	}
	l := look{at: now(), nth: b.begun.Add(1)}
	s, err := read(ctx)
	if err != nil {
		return l, err
	}
	l.found, l.many = alerts.Of(s, l.at), len(s.Instances) >= manyInstances
	b.last = l
	return l, nil
}

// whole reads what alerts are about.
func (h *handlers) whole(ctx context.Context) (alerts.State, error) {
	var s alerts.State
	for _, err := range []error{
		readAll(ctx, h, api.KindNode, &s.Nodes), readAll(ctx, h, api.KindGPU, &s.GPUs), readAll(ctx, h, api.KindGPUPool, &s.Pools),
		readAll(ctx, h, api.KindInstance, &s.Instances), readAll(ctx, h, api.KindImage, &s.Images), readAll(ctx, h, api.KindDisk, &s.Disks),
		readAll(ctx, h, api.KindCephCluster, &s.Ceph), readAll(ctx, h, api.KindBackupTarget, &s.Targets), readAll(ctx, h, api.KindBackup, &s.Backups),
		readAll(ctx, h, api.KindExternalNetwork, &s.External), readAll(ctx, h, api.KindNetwork, &s.Networks), readAll(ctx, h, api.KindRouter, &s.Routers),
		readAll(ctx, h, api.KindWebhook, &s.Webhooks), readAll(ctx, h, api.KindMailSettings, &s.Mail), readAll(ctx, h, api.KindPaymentSettings, &s.Payments),
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
	return s, err
}

// readAll of a kind, whosever they are.
func readAll[T any](ctx context.Context, h *handlers, kind api.Kind, into *[]T) (err error) {
	*into, err = api.All[T](ctx, h.opts.Store, api.ListQuery{Kind: kind})
	return err
}
