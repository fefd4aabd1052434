package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// PreviewInvoice returns the costs of an organization's usage.
func (h *handlers) PreviewInvoice(ctx context.Context, r in[api.PreviewInvoiceParams, none]) (*api.InvoicePreview, error) {
	org, err := h.payer(ctx, r.Params.Organization, r.Params.From, r.Params.To)
	if err != nil {
		return nil, err
	}
	preview, err := h.opts.Billing.InvoicePreview(ctx, org, r.Params.From.UTC(), r.Params.To.UTC())
	if preview.Lines == nil {
		preview.Lines = []api.InvoiceLine{}
	}
	if err != nil {
		return nil, fmt.Errorf("preview the invoice of organization %s: %w", org, err)
	}
	return &preview, nil
}

// ListCosts pages through the costs of an organization's usage.
func (h *handlers) ListCosts(ctx context.Context, r in[api.ListCostsParams, none]) (*api.CostPage, error) {
	p := r.Params
	org, err := h.payer(ctx, p.Organization, p.From, p.To)
	if err != nil {
		return nil, err
	}
	q := api.CostQuery{Organization: org, From: p.From.UTC(), To: p.To.UTC(), By: cmp.Or(p.By, api.CostByProject), Step: cmp.Or(p.Step, api.CostTotal), Top: p.Top,
		Limit: cmp.Or(p.Limit, 1000), Continue: p.Continue}
	page, err := h.opts.Billing.Costs(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("compute the costs of organization %s: %w", org, err)
	}
	return &page, nil
}

// ExplainInvoice returns the usage behind an invoice line.
func (h *handlers) ExplainInvoice(ctx context.Context, r in[api.ExplainInvoiceParams, none]) (*api.InvoiceExplanation, error) {
	org, err := h.payer(ctx, r.Params.Organization, r.Params.From, r.Params.To)
	if err != nil {
		return nil, err
	}
	e, err := h.opts.Billing.Explain(ctx, api.InvoiceQuestion{Organization: org, From: r.Params.From.UTC(), To: r.Params.To.UTC(),
		Line: r.Params.Line, Hour: r.Params.Hour.UTC()})
	if e.Hours == nil {
		e.Hours = []api.InvoiceHour{}
	}
	if err != nil {
		return nil, fmt.Errorf("explain line %q of the invoice of organization %s: %w", r.Params.Line, org, err)
	}
	return &e, nil
}

// ListUsage pages through sums of usage.
func (h *handlers) ListUsage(ctx context.Context, r in[api.ListUsageParams, none]) (*api.UsagePage, error) {
	p := r.Params
	org, project, err := h.scopeOfList(ctx, api.KindUsageRecord, p.Organization, p.Project)
	if err != nil {
		return nil, err
	}
	if _, err := h.payer(ctx, org, p.From, p.To); err != nil {
		return nil, err
	}
	q := api.UsageQuery{Organization: org, Project: project, Meter: p.Meter, Resource: p.Resource, From: p.From.UTC(), To: p.To.UTC(),
		By: cmp.Or(p.By, api.ByDay), Limit: cmp.Or(p.Limit, 1000), Continue: p.Continue}
	page, err := h.opts.Billing.Usage(ctx, q)
	if page.Items == nil {
		page.Items = []api.UsageSum{}
	}
	if err != nil {
		return nil, fmt.Errorf("sum the usage of organization %s: %w", q.Organization, err)
	}
	return &page, nil
}

// ExportUsage streams usage as CSV.
func (h *handlers) ExportUsage(ctx context.Context, r in[api.ExportUsageParams, none]) (*exportResponse, error) {
	org, err := h.payer(ctx, r.Params.Organization, r.Params.From, r.Params.To)
	if err != nil {
		return nil, err
	}
	format := cmp.Or(r.Params.Format, api.ExportCSV)
	if format != api.ExportCSV && format != api.ExportFOCUS {
		return nil, api.Errorf(api.CodeInvalid, "unknown format %q", format).At("format").WithHint("want csv or focus")
	}
	return &exportResponse{ctx, h.opts.Billing, org, r.Params.From.UTC(), r.Params.To.UTC(), format}, nil
}

type exportResponse struct {
	ctx      context.Context //nolint:containedctx // of the request, which the response is a part of
	billing  Billing
	org      api.OrganizationID
	from, to time.Time
	format   api.ExportFormat
}

// write sends the response. An error after the first bytes closes the connection, so
// that the client does not take a partial file for a complete one.
func (e exportResponse) write(w http.ResponseWriter) error {
	first := &firstWrite{w: w, mime: "text/csv; charset=utf-8"}
	err := e.billing.Export(e.ctx, e.org, e.from, e.to, e.format, first)
	if err != nil && first.done {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		return fmt.Errorf("export the usage of organization %s: %w", e.org, err)
	}
	return nil
}

// payer returns the organization whose usage of a period is requested: the one named,
// or the key's own.
func (h *handlers) payer(ctx context.Context, ref string, from, to time.Time) (api.OrganizationID, error) {
	if ref = cmp.Or(ref, who(ctx).Org); ref == "" {
		return "", api.Errorf(api.CodeInvalid, "an organization is required").At("organization").WithHint("name an organization")
	}
	o, err := h.find(ctx, api.KindOrganization, ref, "", "")
	switch {
	case err != nil:
		return "", err
	case !from.Before(to):
		return "", api.Errorf(api.CodeInvalid, "must be after from").At("to").WithHint("from is inclusive, to is exclusive")
	case h.opts.Billing == nil:
		return "", api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	return api.OrganizationID(o.Meta.ID), nil
}
