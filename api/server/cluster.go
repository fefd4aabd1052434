package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// PreviewInvoice answers what an organization's usage costs.
func (h *handlers) PreviewInvoice(ctx context.Context, r PreviewInvoiceRequestObject) (PreviewInvoiceResponseObject, error) {
	ref := r.Params.Organization
	if ref == "" {
		ref = who(ctx).org
	}
	if ref == "" {
		return nil, api.Errorf(api.CodeInvalid, "whose invoice?").At("organization").WithHint("name an organization")
	}
	o, err := h.find(ctx, api.KindOrganization, ref, "", "")
	switch {
	case err != nil:
		return nil, err
	case !r.Params.From.Before(r.Params.To):
		return nil, api.Errorf(api.CodeInvalid, "the period ends before it begins").At("to").WithHint("from is included, to is not")
	case h.opts.Billing == nil:
		return nil, api.Errorf(api.CodeUnavailable, "this server does no billing")
	}
	preview, err := h.opts.Billing.InvoicePreview(ctx, api.OrganizationID(o.Meta.ID), r.Params.From.UTC(), r.Params.To.UTC())
	if preview.Lines == nil {
		preview.Lines = []api.InvoiceLine{}
	}
	return PreviewInvoice200JSONResponse(preview), err
}

// Whoami answers the caller's key.
func (h *handlers) Whoami(ctx context.Context, _ WhoamiRequestObject) (WhoamiResponseObject, error) {
	k := who(ctx).key
	return Whoami200JSONResponse{Key: k.Meta.ID, Name: k.Meta.Name, Role: k.Spec.Role,
		Organization: k.Meta.Organization, Project: k.Meta.Project, ExpiresAt: k.Spec.ExpiresAt}, nil
}

// GetVersion of the server.
func (h *handlers) GetVersion(context.Context, GetVersionRequestObject) (GetVersionResponseObject, error) {
	return GetVersion200JSONResponse{Version: h.opts.Version, API: "v1"}, nil
}

// GetHealth answers when the server does.
func (h *handlers) GetHealth(context.Context, GetHealthRequestObject) (GetHealthResponseObject, error) {
	return GetHealth200JSONResponse{Status: "ok", Revision: h.opts.Store.Revision()}, nil
}
