package main

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/auditor"
)

// audit verifies the audit trail in a term in which this node leads, once the
// cluster has an id, which its marks have.
func (n *node) audit(ctx context.Context, in term) {
	for ; ctx.Err() == nil; sleep(ctx, levelEvery) {
		if _, id, err := n.store.Settled(); err == nil && id != "" {
			auditor.Run(ctx, auditor.Options{Store: auditTerm{in}, Cluster: id, Anchors: n.anchors, Log: n.log})
		}
	}
}

// auditTerm is the store of one term for the auditor. What is read of the last time
// is read with all that was acknowledged, and so the trail has all that is kept
// outside.
type auditTerm struct{ term }

func (t auditTerm) Get(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	return t.store.Get(ctx, kind, id)
}

func (t auditTerm) VerifyAudit(ctx context.Context, after api.AuditMark, limit int) (api.AuditMark, bool, error) {
	return t.store.VerifyAudit(ctx, after, limit)
}
