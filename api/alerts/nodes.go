package alerts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// silent is how old a ready node's report may be: agents report every few seconds,
	// even during a change of the leader.
	silent = 5 * time.Minute
	// ahead is how far a node's clock may be ahead of the others: the time of a report
	// comes from the node's own clock.
	ahead = 30 * time.Second
	// nearlyFull and full are limits of a storage pool.
	nearlyFull, full = 10, 3 // % free
	// unmetered is how old the last usage record may be: usage is recorded every few
	// minutes.
	unmetered = 2 * time.Hour
	// certificateSoon is the least remaining lifetime: certificates last 30 days and
	// are replaced after half of that.
	certificateSoon = 7 * 24 * time.Hour
)

func (l *list) nodes(s State) {
	on, running := map[api.NodeID]int{}, map[api.NodeID]int{}
	for _, i := range s.Instances {
		on[i.Assignment.Node]++
		if i.Status.Phase == api.InstanceRunning {
			running[i.Status.Node]++
		}
	}
	for _, n := range s.Nodes {
		what, a := about{api.KindNode, n.Meta}, n.Assignment
		switch a.State {
		case api.NodeLost:
			waiting, k := "", on[api.NodeID(n.Meta.ID)]
			if k > 0 {
				waiting = ", with " + plural(k, "instance") + " assigned to it"
			}
			l.critical(api.AlertNodeLost, what, a.Since, says("node "+n.Meta.Name+" is lost"+waiting).because(a.Reason).with(api.AlertParams{Count: int64(k)}),
				"check its power and network; if it will not return: basalt node remove "+n.Meta.Name+" --force")
			continue // its other reports are out of date
		case api.NodeSuspect:
			l.warning(api.AlertNodeSuspect, what, a.Since, says("node "+n.Meta.Name+" is not responding").because(a.Reason), "check its power and network")
			continue
		}
		l.reports(n, what)
		l.conditions(n, what)
		l.hardware(n, what)
		l.room(n, what)
		l.usage(n, what, running[api.NodeID(n.Meta.ID)])
	}
	l.agreement(s.Nodes)
	if !slices.ContainsFunc(s.Upgrades, func(u api.Upgrade) bool {
		return u.Status.Phase == api.UpgradeChecking || u.Status.Phase == api.UpgradeRunning
	}) {
		l.versions(s.Nodes)
	}
}

// connecting is how long the encryption of tunnels may wait for a node without an alert.
const connecting = 2 * time.Minute

// conditions adds alerts for the node's conditions that are not true.
func (l *list) conditions(n api.Node, what about) {
	for _, c := range n.Status.Conditions {
		switch {
		case c.Status:
		case c.Type == api.ConditionStore:
			l.critical(api.AlertNodeStore, what, &c.Since, says("node "+n.Meta.Name+" has no copy of the cluster's state").because(c.Message),
				"run basalt node rebuild on the node: it copies the state from the other nodes")
		case c.Type == api.ConditionAgreement: // about other nodes: see agreement
		case c.Type == api.ConditionHypervisor:
			l.critical(api.AlertNodeHypervisor, what, &c.Since, says("node "+n.Meta.Name+" cannot start instances").because(n.WithoutHypervisor()),
				"running instances are not affected; check systemctl status libvirtd on the node, then journalctl -u basaltd")
		case c.Type == api.ConditionHardware: // see hardware
		case c.Type == api.ConditionEncryption:
			if l.now.Sub(c.Since) > connecting { // it is not true at first, and after a restart
				l.warning(api.AlertNodeCondition, what, &c.Since, says("node "+n.Meta.Name+" does not exchange encrypted packets with all other nodes").because(c.Message).with(api.AlertParams{Variant: api.AlertEncryption}),
					"packets of instance networks are sent in plain while the condition's reason is preparing, and otherwise not at all; check journalctl -u basaltd on the node")
			}
		default:
			l.critical(api.AlertNodeCondition, what, &c.Since, says("on node "+n.Meta.Name+" "+c.Type+" does not work").because(cmp.Or(c.Message, c.Reason)).with(api.AlertParams{Names: []string{c.Type}}),
				"check journalctl -u basaltd on the node")
		}
	}
}

// agreement adds an alert if nodes have different copies of the cluster's state and no
// majority agrees. There is a single alert, from the node that has reported it last.
func (l *list) agreement(nodes []api.Node) {
	var last *api.Condition
	for _, n := range nodes {
		for i, c := range n.Status.Conditions {
			if c.Type == api.ConditionAgreement && !c.Status && (last == nil || c.Since.After(last.Since)) {
				last = &n.Status.Conditions[i]
			}
		}
	}
	if last != nil {
		l.critical(api.AlertAgreement, about{kind: api.KindNode}, &last.Since, says("copies of the cluster's state differ between nodes, and no majority has the same copy").because(last.Message),
			"find out which copy is correct (check the kernel's log for disk errors; see docs/operations.md), then run on each other node: basalt node rebuild")
	}
}

// reports checks that the node has reported recently, and that its clock is not ahead.
func (l *list) reports(n api.Node, what about) {
	seen := n.Status.SeenAt
	switch {
	case seen.IsZero(): // it is still joining
	case seen.Sub(l.now) > ahead:
		l.warning(api.AlertNodeClock, what, nil, says(fmt.Sprintf("the clock of node %s is ahead by %s", n.Meta.Name, seen.Sub(l.now).Round(time.Second))).with(api.AlertParams{Seconds: int64(seen.Sub(l.now) / time.Second)}),
			"check its time synchronization: timedatectl, chronyc tracking")
	case l.now.Sub(seen) > silent:
		l.critical(api.AlertNodeSilent, what, &seen, says("node "+n.Meta.Name+" has not reported its status"),
			"check that basaltd is running there, and its clock: timedatectl; then journalctl -u basaltd")
	}
}

// usage compares two times of the node's own clock. Older versions report none.
func (l *list) usage(n api.Node, what about, running int) {
	at := n.Status.MeteredAt
	if running == 0 || at.IsZero() || n.Status.SeenAt.Sub(at) <= unmetered {
		return
	}
	l.warning(api.AlertNodeUsage, what, &at, says("not all usage on node "+n.Meta.Name+" is recorded; "+plural(running, "instance")+" on it").with(api.AlertParams{Count: int64(running)}),
		"check journalctl -u basaltd on the node for \"meter\"; usage that is not recorded is not charged")
}

// room checks the free space of the node's storage pools. A shared pool is checked by
// each of its nodes, with an alert for each, since each node's instances stop.
func (l *list) room(n api.Node, what about) {
	pools := n.Status.Pools
	if len(pools) == 0 {
		pools = []api.StoragePool{{Name: api.PoolLocal, SizeBytes: n.Status.StorageBytes, FreeBytes: n.Status.StorageFreeBytes}}
	}
	var low []string
	params := api.AlertParams{Percent: nearlyFull}
	how := api.AlertWarning
	for _, p := range pools {
		if p.SizeBytes <= 0 {
			continue
		}
		free := float64(p.FreeBytes) / float64(p.SizeBytes) * 100
		if free >= nearlyFull {
			continue
		}
		params.Names, params.Percent = append(params.Names, p.Name), min(params.Percent, int64(math.Round(free)))
		low = append(low, fmt.Sprintf("%s (%.0f %% free)", p.Name, free))
		if free < full {
			how = api.AlertCritical
		}
	}
	if len(low) > 0 {
		l.add(api.AlertNodeStorage, how, what, nil, says("storage on node "+n.Meta.Name+" is nearly full: "+strings.Join(low, ", ")).with(params),
			"delete unused volumes, snapshots and images, or add a disk")
	}
}

// versions adds an alert if nodes have different versions, as in an incomplete upgrade.
func (l *list) versions(nodes []api.Node) {
	by := map[string][]string{}
	for _, n := range nodes {
		if v := n.Status.Version; v != "" {
			by[v] = append(by[v], n.Meta.Name)
		}
	}
	if len(by) < 2 {
		return
	}
	var words, each []string
	for v, names := range by {
		slices.Sort(names)
		words, each = append(words, v+" on "+strings.Join(names, ", ")), append(each, v+" ("+strings.Join(names, ", ")+")")
	}
	slices.Sort(words)
	slices.Sort(each)
	l.warning(api.AlertVersions, about{kind: api.KindNode}, nil, says("the nodes run different versions: "+strings.Join(words, "; ")).with(api.AlertParams{Count: int64(len(each)), Names: each}), "upgrade the nodes with the older version, one after another")
}

// members adds alerts if one more failure would stop the cluster, or if a node's
// certificate expires soon.
func (l *list) members(s State) {
	voters, down := 0, []string(nil)
	state := map[api.NodeID]api.NodeState{}
	meta := map[api.NodeID]api.Meta{}
	for _, n := range s.Nodes {
		state[api.NodeID(n.Meta.ID)], meta[api.NodeID(n.Meta.ID)] = n.Assignment.State, n.Meta
	}
	for _, m := range s.Members {
		if m.Voter {
			voters++
			if st := state[m.Node]; st == api.NodeLost || st == api.NodeSuspect {
				down = append(down, m.Name)
			}
		}
		l.certificate(m, meta[m.Node])
	}
	slices.Sort(down)
	most := voters/2 + 1
	switch up := voters - len(down); {
	case len(down) > 0 && up <= most:
		l.critical(api.AlertQuorum, about{kind: api.KindNode}, nil,
			says(fmt.Sprintf("%d of %d voting nodes are down (%s): the cluster becomes read-only if one more fails", len(down), voters, strings.Join(down, ", "))).
				with(api.AlertParams{Count: int64(len(down)), Limit: int64(voters), Names: down}),
			"restore them first; if one will not return: basalt node remove NAME --force")
	case voters == 2:
		l.warning(api.AlertQuorum, about{kind: api.KindNode}, nil, says("the cluster has two voting nodes: it becomes read-only if either fails").with(api.AlertParams{Variant: api.AlertQuorumTwo, Count: 2}), "add a third node")
	}
}

func (l *list) certificate(m api.Member, meta api.Meta) {
	if m.CertificateUntil == nil {
		return
	}
	left := m.CertificateUntil.Sub(l.now)
	what := about{api.KindNode, api.Meta{ID: string(m.Node), Name: cmp.Or(meta.Name, m.Name)}}
	switch {
	case left <= 0:
		l.critical(api.AlertNodeCertificate, what, m.CertificateUntil, says("the certificate of node "+m.Name+" has expired: the other nodes refuse its connections").with(api.AlertParams{Variant: api.AlertCertificateExpired, Until: m.CertificateUntil}),
			"let it join again: basalt node token create, then on the node basalt node join TOKEN")
	case left < certificateSoon:
		l.warning(api.AlertNodeCertificate, what, nil, says("the certificate of node "+m.Name+" expires at "+m.CertificateUntil.UTC().Format("2006-01-02 15:04")+" UTC, and was not renewed").with(api.AlertParams{Until: m.CertificateUntil}),
			"a node renews it automatically when it reaches the leader: check journalctl -u basaltd on the node, and its clock")
	}
}
