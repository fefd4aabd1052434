package server

import (
	"context"
	"fmt"
	"strconv"

	"github.com/basalt-gpu/basalt/api"
)

// ListInstanceEvents pages through an instance's history.
func (h *handlers) ListInstanceEvents(ctx context.Context, r in[api.ListInstanceEventsParams, none]) (*api.InstanceEventList, error) {
	o, err := h.find(ctx, api.KindInstance, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	limit, before := r.Params.Limit, int64(0)
	if limit == 0 {
		limit = api.MaxHistory
	}
	if r.Params.Continue != "" {
		if before, err = strconv.ParseInt(r.Params.Continue, 10, 64); err != nil || before < 1 {
			return nil, api.Errorf(api.CodeInvalid, "must be the revision of an event").At("continue")
		}
	}
	all, err := h.opts.Store.History(ctx, api.InstanceID(o.Meta.ID))
	if err != nil {
		return nil, fmt.Errorf("read the history of instance %s: %w", o.Meta.ID, err)
	}
	out := api.InstanceEventList{Items: []api.InstanceEvent{}}
	for _, e := range all {
		switch {
		case before > 0 && e.Revision >= before:
		case len(out.Items) == limit:
			out.Continue = strconv.FormatInt(out.Items[limit-1].Revision, 10)
			return &out, nil
		default:
			out.Items = append(out.Items, e)
		}
	}
	return &out, nil
}
