package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) auditTries() []try {
	return []try{
		{"A7 the audit trail is changed through the API", "there is no such way", w.changeTrail},
		{"A7 the audit trail has gaps, or events that do not follow", "it has none", w.wholeTrail},
		{"A7 an attack that is refused", "changes nothing, and what was done is in the trail", w.trailOfChanges},
	}
}

func (w *world) changeTrail(ctx context.Context) error {
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		for _, path := range []string{"/v1/audit-events", "/v1/audit-events/1"} {
			for _, token := range []string{w.op, w.admin} {
				a, err := w.once(ctx, token, method, path, map[string]any{})
				if err != nil {
					return err
				}
				if a.ok() || a.status >= http.StatusInternalServerError {
					return fmt.Errorf("%s %s: %s", method, path, a)
				}
			}
		}
	}
	return nil
}

// wholeTrail reads the whole audit log and verifies its hashes.
func (w *world) wholeTrail(ctx context.Context) error {
	var last api.AuditEvent
	for after := ""; ; {
		page, err := fetch[api.AuditEventList](ctx, w.wire, w.op, http.MethodGet, "/v1/audit-events?oldest=true&continue="+after, nil)
		if err != nil {
			return err
		}
		for _, e := range page.Items {
			if (last.Seq > 0 || e.Seq == 1) && !e.Follows(last) || e.Seal == "" {
				return fmt.Errorf("event %d does not follow event %d, or has no seal", e.Seq, last.Seq)
			}
			last = e
		}
		if after = page.Continue; after == "" {
			break
		}
	}
	if last.Seq == 0 {
		return errors.New("the trail is empty")
	}
	return nil
}

// trailOfChanges creates an object, makes a request that is refused, and looks for both
// in the audit log.
func (w *world) trailOfChanges(ctx context.Context) error {
	o, err := w.make(ctx, w.admin, "/v1/projects", w.tag+"-trail", api.Meta{Organization: w.foe.Meta.ID}, api.ProjectSpec{})
	if err != nil {
		return err
	}
	before, err := fetch[object](ctx, w.wire, w.op, http.MethodGet, w.web.at(), nil)
	if err != nil {
		return err
	}
	if err := w.refused(ctx, w.admin, http.MethodDelete, w.web.at(), nil, api.CodeNotFound); err != nil {
		return err
	}
	after, err := fetch[object](ctx, w.wire, w.op, http.MethodGet, w.web.at(), nil)
	if err != nil {
		return err
	}
	if before.Meta.Revision != after.Meta.Revision {
		return fmt.Errorf("the victim's project was changed: revision %d, then %d", before.Meta.Revision, after.Meta.Revision)
	}
	trail, err := fetch[api.AuditEventList](ctx, w.wire, w.admin, http.MethodGet, "/v1/audit-events?object="+o.Meta.ID, nil)
	if err == nil && len(trail.Items) != 1 {
		err = fmt.Errorf("the trail has %d events of what was made, want 1", len(trail.Items))
	}
	return err
}
