package server

import (
	"context"
	"fmt"
	"strconv"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// audited wraps the store and adds a note about the caller to each batch.
type audited struct{ Store }

func (s audited) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if me, ok := auth.IdentityOf(ctx); ok {
		b.Audit = &api.AuditNote{Actor: me.ID, Name: me.Name, Role: me.Role, From: auth.ClientAddress(auth.Request(ctx)), Operation: auth.OperationOf(ctx)}
	}
	return s.Store.Apply(ctx, b) //nolint:wrapcheck // the caller says what it writes
}

// ListAuditEvents pages through the changes in the caller's organization, or in all
// organizations for an operator.
func (h *handlers) ListAuditEvents(ctx context.Context, r in[api.ListAuditEventsParams, none]) (*api.AuditEventList, error) {
	q := api.AuditQuery{Newest: !r.Params.Oldest, Limit: r.Params.Limit}
	if q.Limit == 0 {
		q.Limit = maxLimit
	}
	var err error
	if r.Params.Continue != "" {
		if q.After, err = strconv.ParseInt(r.Params.Continue, 10, 64); err != nil || q.After < 1 {
			return nil, api.Errorf(api.CodeInvalid, "must be the seq of an event").At("continue")
		}
	}
	if me := who(ctx); r.Params.Organization != "" || me.Role != api.RoleOperator {
		ref := r.Params.Organization
		if ref == "" {
			ref = me.Org
		}
		o, err := h.find(ctx, api.KindOrganization, ref, "", "")
		if err != nil {
			return nil, err
		}
		q.Organization = o.Meta.ID
	}
	if q.Only, err = auditFilter(r.Params); err != nil {
		return nil, err
	}
	p, err := h.opts.Store.Audit(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	out := api.AuditEventList{Items: p.Items}
	if p.More {
		out.Continue = strconv.FormatInt(p.Last, 10)
	}
	return &out, nil
}

func auditFilter(p api.ListAuditEventsParams) (f api.AuditFilter, err error) {
	for _, v := range []struct {
		field, value string
		most         int
	}{{"actor", p.Actor, 256}, {"operation", p.Operation, 64}, {"kind", string(p.Kind), 64}, {"object", p.Object, 256}} {
		if len(v.value) > v.most {
			return f, api.Errorf(api.CodeInvalid, "must have at most %d bytes", v.most).At(v.field)
		}
	}
	if !p.From.IsZero() && !p.To.IsZero() && !p.From.Before(p.To) {
		return f, api.Errorf(api.CodeInvalid, "must be after from").At("to")
	}
	return api.AuditFilter{Actor: p.Actor, Operation: p.Operation, Kind: p.Kind, Object: p.Object, Removed: p.Removed, From: p.From, To: p.To}, nil
}
