package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // nodes may lack a time zone database

	"github.com/basalt-gpu/basalt/api"
)

// usageServices is the default limit of a page: each service requires reading a month
// of an organization's usage.
const usageServices = 100

// maxCarry limits the last hours of a month that are carried into the next one.
const maxCarry = 72 * time.Hour

// ListServiceUsage returns totals by service and meter.
func (h *handlers) ListServiceUsage(ctx context.Context, r in[api.ListServiceUsageParams, none]) (*api.ServiceUsagePage, error) {
	q, now := r.Params, h.opts.Now()
	if h.opts.Billing == nil {
		return nil, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	if err := api.ValidateInstallation(q.Installation); err != nil {
		return nil, err
	}
	from, to, err := monthIn(q.Month, q.TimeZone, now)
	if err != nil {
		return nil, err
	}
	carry := time.Duration(q.CarryHours) * time.Hour
	if carry < 0 || carry > maxCarry {
		return nil, api.Errorf(api.CodeInvalid, "%d hours cannot be carried over", q.CarryHours).At("carryHours").WithHint("must be between 0 and %d", maxCarry/time.Hour)
	}
	useFrom, useTo := from.Add(-carry), to.Add(-carry)
	var p page[api.Service]
	if q.Service != "" {
		s, err := h.service(ctx, q.Service)
		if err == nil && !strings.HasPrefix(s.Meta.Name, q.Installation+":") {
			err = notFound(api.KindService, q.Service)
		}
		if err != nil {
			return nil, err
		}
		p.Items = append(p.Items, s)
	} else if p, err = h.servicesPage(ctx, q.Installation, query{limit: cmp.Or(q.Limit, usageServices), after: q.Continue}); err != nil {
		return nil, err
	}
	out := api.ServiceUsagePage{From: from, To: to, UseFrom: useFrom, UseTo: useTo, ReadAt: now.UTC(), Items: []api.ServiceUsage{}, Continue: p.Continue}
	for _, s := range p.Items {
		totals, err := h.totals(h.read(ctx), s.Spec.Organization, useFrom, useTo)
		if err != nil {
			return nil, err
		}
		if len(totals) == 0 && s.Spec.TerminatedAt != nil {
			continue
		}
		out.Items = append(out.Items, api.ServiceUsage{ID: s.Meta.ID, Name: s.Meta.Name, Organization: s.Spec.Organization, Totals: totals})
	}
	return &out, nil
}

// totals returns the sums of an organization's usage by meter, in the order of meters.
func (h *handlers) totals(ctx context.Context, org api.OrganizationID, from, to time.Time) ([]api.MeterTotal, error) {
	sums := map[api.Meter]api.Quantity{}
	q := api.UsageQuery{Organization: string(org), From: from, To: to, By: api.ByTotal, Limit: maxLimit}
	for {
		p, err := h.opts.Billing.Usage(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("sum the usage of organization %s: %w", org, err)
		}
		for _, u := range p.Items {
			sums[u.Meter] = sums[u.Meter].Plus(u.Quantity)
		}
		if q.Continue = p.Continue; q.Continue == "" {
			break
		}
	}
	out := []api.MeterTotal{}
	for meter, n := range sums {
		out = append(out, api.MeterTotal{Meter: meter, Quantity: n})
	}
	slices.SortFunc(out, func(a, b api.MeterTotal) int { return cmp.Compare(a.Meter, b.Meter) })
	return out, nil
}

// monthIn returns the beginning of a calendar month in a time zone, and that of the
// next month.
func monthIn(month, zone string, now time.Time) (from, to time.Time, err error) {
	if strings.EqualFold(zone, "local") { // Go's name for the server's own zone
		zone = "?"
	}
	where, err := time.LoadLocation(zone)
	if err != nil {
		return from, to, api.Errorf(api.CodeInvalid, "unknown time zone").At("timeZone").WithHint("use an IANA name, e.g. Europe/Berlin")
	}
	at := now.In(where)
	if month != "" {
		if at, err = time.ParseInLocation("2006-01", month, where); err != nil || at.Year() < 1970 || at.Year() > 2200 {
			return from, to, api.Errorf(api.CodeInvalid, "%q is not a month", month).At("month").WithHint("e.g. 2026-11")
		}
	}
	first := func(m time.Month) time.Time { return time.Date(at.Year(), m, 1, 0, 0, 0, 0, where).UTC() }
	return first(at.Month()), first(at.Month() + 1), nil
}
