package alerts

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// unchecked is how old the leader's last verification of the audit log may be.
const unchecked = 24 * time.Hour

func (l *list) audit(s State) {
	for _, c := range s.Audit {
		what := about{api.KindAuditCheck, c.Meta}
		if c.Status.Changed != "" {
			l.critical(api.AlertAuditChanged, what, &c.Status.ChangedAt, says("the audit trail was modified").because(c.Status.Changed),
				"compare it with a backup and with the copy outside the cluster; the cluster's tables were changed without the API")
		}
		if c.Status.Unanchored != "" {
			l.warning(api.AlertAuditUnanchored, what, &c.Status.UnanchoredAt, says("the end of the audit trail is not stored outside the cluster").because(c.Status.Unanchored),
				"set basaltd's --audit-anchor on all nodes, and check that the location it names is writable")
		} else if c.Status.Changed == "" && l.now.Sub(c.Status.CheckedAt) > unchecked {
			l.warning(api.AlertAuditUnanchored, what, &c.Status.CheckedAt, says("the audit trail has not been verified for a day").with(api.AlertParams{Variant: api.AlertUnverified}), "the leader's log has the reason")
		}
	}
}
