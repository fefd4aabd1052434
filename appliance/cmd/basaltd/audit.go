package main

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/auditor"
)

// audit verifies the audit log during a term in which this node is the leader, once the cluster
// has an ID, which the marks contain.
func (n *node) audit(ctx context.Context, in term) {
	for ; ctx.Err() == nil; sleep(ctx, levelEvery) {
		if _, id, err := n.store.Settled(); err == nil && id != "" {
			auditor.Run(ctx, auditor.Options{Store: auditTerm{in}, Cluster: id, Anchors: n.anchors, Log: n.log})
		}
	}
}

// auditTerm is the auditor's store of one term. The last mark is read after everything
// acknowledged, so the audit log contains everything that an anchor stores.
type auditTerm struct{ term }

func (t auditTerm) Get(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	return t.store.Get(ctx, kind, id)
}

func (t auditTerm) VerifyAudit(ctx context.Context, after api.AuditMark, limit int) (api.AuditMark, bool, error) {
	return t.store.VerifyAudit(ctx, after, limit)
}
