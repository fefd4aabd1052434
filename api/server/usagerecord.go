package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ListUsageRecords pages through what the caller sees.
func (h *handlers) ListUsageRecords(ctx context.Context, r ListUsageRecordsRequestObject) (ListUsageRecordsResponseObject, error) {
	p, err := list[api.UsageRecord](ctx, h, api.KindUsageRecord, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name,
		organization: r.Params.Organization, project: r.Params.Project})
	return ListUsageRecords200JSONResponse(p), err
}

// GetUsageRecord by id or name.
func (h *handlers) GetUsageRecord(ctx context.Context, r GetUsageRecordRequestObject) (GetUsageRecordResponseObject, error) {
	o, err := get[api.UsageRecord](ctx, h, api.KindUsageRecord, r.ID, r.Params.Organization, r.Params.Project)
	return GetUsageRecord200JSONResponse(o), err
}
