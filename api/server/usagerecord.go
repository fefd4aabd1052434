package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// recordRounds limits the pages of the store that are read for one page, when filters
// match little.
const recordRounds = 8

// ListUsageRecords pages through the usage records that the caller may see, ordered by
// time.
func (h *handlers) ListUsageRecords(ctx context.Context, r in[api.ListUsageRecordsParams, none]) (*page[api.UsageRecord], error) {
	p := r.Params
	out := page[api.UsageRecord]{Items: []api.UsageRecord{}, Revision: h.opts.Store.Revision()}
	q := api.RecordQuery{Meter: p.Meter, Resource: p.Resource, ID: p.Name, From: p.From.UTC(), To: p.To.UTC(), Limit: cmp.Or(p.Limit, api.MaxRecords)}
	limit := q.Limit
	after, err := api.ParseRecordPlace(p.Continue)
	if err != nil {
		return nil, err
	}
	org, project, err := h.scopeOfList(ctx, api.KindUsageRecord, p.Organization, p.Project)
	if err != nil {
		return nil, err
	}
	q.Project = project
	organizations, err := h.recordsOf(ctx, org)
	if err != nil {
		return nil, err
	}
	rounds := recordRounds
	for _, org := range organizations {
		if org != "" && org < after.Organization {
			continue
		}
		if q.Organization, q.After = org, after; org != "" && org != after.Organization {
			q.After = api.RecordPlace{}
		}
		for more := true; more; {
			if len(out.Items) == limit || rounds == 0 {
				out.Continue = after.String()
				return &out, nil
			}
			q.Limit = limit - len(out.Items)
			page, err := h.opts.Store.Records(ctx, q)
			if err != nil {
				return nil, fmt.Errorf("read usage records: %w", err)
			}
			for _, r := range page.Items {
				if who(ctx).Sees(api.Object{Kind: r.Kind, Meta: r.Meta}) {
					out.Items = append(out.Items, r)
				}
			}
			if page.Next != (api.RecordPlace{}) {
				after = page.Next
			}
			if q.After, more = after, page.More; more {
				rounds--
			}
		}
	}
	return &out, nil
}

// recordsOf returns the organizations whose records are read, in the order of records;
// an empty one means all, including deleted ones.
func (h *handlers) recordsOf(ctx context.Context, org string) (out []string, err error) {
	me := who(ctx)
	if org != "" || me.Role == api.RoleOperator {
		return []string{org}, nil
	}
	err = h.each(ctx, api.ListQuery{Kind: api.KindOrganization}, func(o api.Object) bool {
		if me.Sees(o) {
			out = append(out, o.Meta.ID)
		}
		return true
	})
	slices.Sort(out)
	return out, err
}
