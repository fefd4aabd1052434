package alerts

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// unchecked is how old the leader's last look at the audit trail may be.
const unchecked = 24 * time.Hour

func (l *list) audit(s State) {
	for _, c := range s.Audit {
		what := about{api.KindAuditCheck, c.Meta}
		if c.Status.Changed != "" {
			l.critical(api.AlertAuditChanged, what, &c.Status.ChangedAt, "the audit trail is not what was written: "+c.Status.Changed,
				"compare it with a backup and with what is kept outside; somebody has changed the cluster's tables past the API")
		}
		if c.Status.Unanchored != "" {
			l.warning(api.AlertAuditUnanchored, what, &c.Status.UnanchoredAt, "the audit trail's end is not kept outside: "+c.Status.Unanchored,
				"name a place with basaltd's --audit-anchor, on all nodes, and see to what it names")
		} else if c.Status.Changed == "" && l.now.Sub(c.Status.CheckedAt) > unchecked {
			l.warning(api.AlertAuditUnanchored, what, &c.Status.CheckedAt, "the audit trail was not verified for a day", "the leader's log says why")
		}
	}
}
