package alerts

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// upgrades adds alerts for upgrades that paused by themselves and wait for an operator.
func (l *list) upgrades(s State) {
	for _, u := range s.Upgrades {
		if u.Status.Phase != api.UpgradePaused || u.Spec.Paused {
			continue
		}
		how := api.AlertWarning
		if slices.ContainsFunc(u.Status.Nodes, func(n api.UpgradeNode) bool { return n.Phase == api.UpgradeNodeFailed }) {
			how = api.AlertCritical
		}
		since := u.Status.Since
		l.add(api.AlertUpgradePaused, how, about{api.KindUpgrade, u.Meta}, &since, says("the upgrade to "+u.Spec.Version+" is paused").because(u.Status.Reason).with(api.AlertParams{Version: u.Spec.Version}),
			"basalt cluster upgrade --status shows which node; when the cause is fixed: basalt cluster upgrade --resume")
	}
}
