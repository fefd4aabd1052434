package alerts

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *time.Time {
	at := now.Add(-d)
	return &at
}

func meta(id string) api.Meta {
	return api.Meta{ID: id, Name: id, CreatedAt: *ago(48 * time.Hour), UpdatedAt: *ago(48 * time.Hour)}
}

func node(id string, change func(*api.Node)) api.Node {
	n := api.Node{Meta: meta(id), Assignment: api.NodeAssignment{State: api.NodeReady},
		Status: api.NodeStatus{SeenAt: *ago(time.Second), Version: "1.0", StorageBytes: 100, StorageFreeBytes: 50}}
	if change != nil {
		change(&n)
	}
	return n
}

func card(promisedVRAM, share int64) State {
	return State{Nodes: []api.Node{node("n", nil)}, Pools: []api.GPUPool{{Meta: meta("default"), Spec: api.GPUPoolSpec{MaxVgpusPerGpu: 1}}},
		GPUs:      []api.GPU{{Meta: meta("g"), Status: api.GPUStatus{Node: "n", VramBytes: 8 << 30, SeenAt: *ago(time.Minute)}}},
		Instances: []api.Instance{{Meta: meta("i"), Assignment: api.InstanceAssignment{Node: "n", Gpu: "g", VgpuVramBytes: promisedVRAM, VgpuSharePercent: share}, Status: api.InstanceStatus{Phase: api.InstanceRunning, Node: "n"}}}}
}

func backup(change func(*api.Backup)) api.Backup {
	b := api.Backup{Meta: meta("b"), Spec: api.BackupSpec{Volume: "v", Target: "t"}}
	change(&b)
	return b
}

func of[T any](x T, change func(*T)) []T {
	change(&x)
	return []T{x}
}

func runs(id string) api.Instance {
	return api.Instance{Meta: meta(id), Assignment: api.InstanceAssignment{Node: "n", Epoch: 1}, Status: api.InstanceStatus{Phase: api.InstanceRunning, Node: "n", Epoch: 1}}
}

// TestOf checks, for one problem per case or none, the severity, the code, and words
// that the reader needs.
func TestOf(t *testing.T) {
	tested := map[string]bool{} // codes and variants
	members := func(voters int) (out []api.Member) {
		for _, id := range []string{"a", "b", "c"}[:voters] {
			out = append(out, api.Member{Node: api.NodeID(id), Name: id, Voter: true})
		}
		return out
	}
	lost := func(n *api.Node) { n.Assignment.State, n.Assignment.Since = api.NodeLost, ago(time.Hour) }
	pendingInstance := api.Instance{Meta: meta("i"), Assignment: api.InstanceAssignment{Reason: "no node has room"}}
	for name, c := range map[string]struct {
		s    State
		want string // "severity code words", or nothing
	}{
		"nothing at all": {State{}, ""},
		"all is well": {State{Nodes: []api.Node{node("a", nil)}, GPUs: card(4<<30, 50).GPUs, Members: members(1)},
			""},
		"lost": {State{Nodes: []api.Node{node("n", lost)}, Instances: []api.Instance{{Meta: meta("i"), Assignment: api.InstanceAssignment{Node: "n", NodeLost: true}}}},
			"Critical node.lost 1 instance assigned"},
		"suspect": {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Assignment.State, n.Assignment.Reason = api.NodeSuspect, "for 5 s" })}}, "Warning node.suspect for 5 s"},
		"joining": {State{Nodes: []api.Node{{Meta: meta("n")}}}, ""},
		"drained": {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Assignment.State = api.NodeDrained })}}, ""},
		"silent":  {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Status.SeenAt = *ago(6 * time.Minute) })}}, "Critical node.silent has not reported"},
		"use is not recorded": {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Status.MeteredAt = *ago(3 * time.Hour) })}, Instances: []api.Instance{runs("i")}},
			"Warning node.usage 1 instance on it"},
		"use of nobody":    {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Status.MeteredAt = *ago(3 * time.Hour) })}}, ""},
		"use is recorded":  {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Status.MeteredAt = *ago(time.Hour) })}, Instances: []api.Instance{runs("i")}}, ""},
		"an older version": {State{Nodes: []api.Node{node("n", nil)}, Instances: []api.Instance{runs("i")}}, ""},
		"tried again": {State{Instances: of(runs("i"), func(i *api.Instance) { i.Status.Phase, i.Status.LastError = api.InstanceStarting, "no such device" })},
			"Warning instance.tried no such device"},
		"tried once": {State{Instances: of(runs("i"), func(i *api.Instance) {
			i.Status.Phase, i.Status.LastError, i.Meta.UpdatedAt = api.InstanceStarting, "no such device", *ago(time.Minute)
		})}, ""},
		"cannot be deleted": {State{Instances: of(runs("i"), func(i *api.Instance) { i.Status.LastError, i.Meta.DeletedAt = "busy", ago(time.Hour) })}, "Warning instance.tried busy"},
		"runs, with a word": {State{Instances: of(runs("i"), func(i *api.Instance) { i.Status.LastError = "the vGPU's backend has ended" })}, ""},
		"clock":             {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Status.SeenAt = *ago(-time.Minute) })}}, "Warning node.clock ahead by 1m0s"},
		"hypervisor": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Conditions = []api.Condition{{Type: "Hypervisor", Message: "no libvirt"}, {Type: "Network", Status: true}}
		})}}, "Critical node.hypervisor cannot start instances: no libvirt"},
		"hardware fails": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Conditions = []api.Condition{{Type: api.ConditionHardware, Message: "disks: sda fails", Since: *ago(time.Hour)}}
			n.Status.Hardware = []api.HardwareCheck{{ID: api.HardwareBMC, State: api.HardwareWarning, Found: "silent"}, {ID: api.HardwareDisks, State: api.HardwareFailed, Found: "sda fails"}}
		})}}, "Critical node.hardware hardware of node n has failed: disks (sda fails)"},
		"hardware wears out": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Hardware = []api.HardwareCheck{{ID: api.HardwareMemory, State: api.HardwareWarning, Found: "7 corrected errors"}, {ID: api.HardwareIOMMU, State: api.HardwareWarning, Found: "none"}}
		})}}, "Warning node.hardware needs attention: memory (7 corrected errors)"},
		"hardware as it was made": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Conditions = []api.Condition{{Type: api.ConditionHardware, Status: true}}
			n.Status.Hardware = []api.HardwareCheck{{ID: api.HardwareKVM, State: api.HardwareWarning, Found: "off"}, {ID: api.HardwareClock, State: api.HardwareUnknown, Found: "nothing"}}
		})}}, ""},
		"no switch": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Conditions = []api.Condition{{Type: "Hypervisor", Status: true}, {Type: "Network", Message: "no switch"}}
		})}}, "Critical node.condition Network does not work: no switch"},
		"encryption": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Conditions = []api.Condition{{Type: api.ConditionEncryption, Reason: "preparing", Message: "no key yet from b", Since: *ago(3 * time.Minute)}}
		})}}, "Warning node.condition does not exchange encrypted packets with all other nodes: no key yet from b"},
		"encryption is turned on": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Conditions = []api.Condition{{Type: api.ConditionEncryption, Reason: "preparing", Message: "no key yet from b", Since: *ago(time.Minute)}}
		})}}, ""},
		"no store": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Conditions = []api.Condition{{Type: api.ConditionStore, Message: "log.db: it is missing"}}
		})}}, "Critical node.store no copy of the cluster's state: log.db: it is missing"},
		"no majority": {State{Nodes: []api.Node{
			node("a", func(n *api.Node) {
				n.Status.Conditions = []api.Condition{{Type: api.ConditionAgreement, Message: "b differs from c", Since: *ago(time.Hour)}}
			}),
			node("b", func(n *api.Node) {
				n.Status.Conditions = []api.Condition{{Type: api.ConditionAgreement, Message: "b differs from c differs from d", Since: *ago(time.Minute)}}
			}),
		}}, "Critical cluster.store no majority has the same copy: b differs from c differs from d"},
		"agreed again": {State{Nodes: []api.Node{node("a", func(n *api.Node) {
			n.Status.Conditions = []api.Condition{{Type: api.ConditionAgreement, Status: true}}
		})}}, ""},
		"filling": {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Status.StorageFreeBytes = 9 })}}, "Warning node.storage local (9 % free)"},
		"full": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Pools = []api.StoragePool{{Name: "local", SizeBytes: 100, FreeBytes: 50}, {Name: "shared", SizeBytes: 100, FreeBytes: 1}}
		})}}, "Critical node.storage shared (1 % free)"},
		"versions": {State{Nodes: []api.Node{node("a", nil), node("b", func(n *api.Node) { n.Status.Version = "0.9" })}}, "Warning cluster.versions 0.9 on b; 1.0 on a"},
		"two vote": {State{Nodes: []api.Node{node("a", nil), node("b", nil)}, Members: members(2)}, "Warning cluster.quorum add a third"},
		"one of three down": {State{Nodes: []api.Node{node("a", nil), node("b", nil), node("c", func(n *api.Node) { n.Assignment.State = api.NodeSuspect })}, Members: members(3)},
			"Critical cluster.quorum 1 of 3 voting nodes are down (c) + Warning node.suspect c"},
		"certificate": {State{Nodes: []api.Node{node("a", nil)}, Members: []api.Member{{Node: "a", Name: "a", CertificateUntil: ago(-48 * time.Hour)}}}, "Warning node.certificate 2026-03-03 12:00 UTC"},
		"certificate over": {State{Nodes: []api.Node{node("a", nil)}, Members: []api.Member{{Node: "a", Name: "a", CertificateUntil: ago(time.Hour)}}},
			"Critical node.certificate has expired"},
		"promised once": {card(8<<30, 100), ""},
		"too much VRAM": {card(9<<30, 10), "Critical gpu.promised 9.0 GiB of VRAM, at most 8.0 GiB allowed"},
		"more VRAM than it has, as its pool says": {func() State {
			s := card(9<<30, 10)
			s.Pools[0].Spec.VramOvercommitPercent = 150
			return s
		}(), ""},
		"too much time": {card(1<<30, 101), "Critical gpu.promised 101 % of its time"},
		"too many": {func() State {
			s := card(1<<30, 10)
			s.Instances = append(s.Instances, s.Instances[0])
			return s
		}(), "Warning gpu.promised 2 virtual GPUs, at most 1 allowed"},
		"card gone": {func() State {
			s := card(1<<30, 10)
			s.GPUs[0].Status.SeenAt = *ago(10 * time.Minute)
			return s
		}(), "Critical gpu.gone 1 instance on it"},
		"card of a lost node": {func() State {
			s := card(1<<30, 10)
			s.GPUs[0].Status.SeenAt = *ago(10 * time.Minute)
			lost(&s.Nodes[0])
			return s
		}(), "Critical node.lost 1 instance"},
		"card failed": {func() State {
			s := card(1<<30, 10)
			s.GPUs[0].Status.Conditions = []api.Condition{{Type: "Works", Message: "Xid 79"}}
			return s
		}(), "Critical gpu.condition Xid 79"},
		"an upgrade": {State{Nodes: []api.Node{node("a", nil), node("b", func(n *api.Node) { n.Status.Version = "2" })},
			Upgrades: of(api.Upgrade{Meta: meta("upgrade")}, func(u *api.Upgrade) { u.Status.Phase = api.UpgradeRunning })}, ""},
		"an upgrade went back": {State{Upgrades: of(api.Upgrade{Meta: meta("upgrade")}, func(u *api.Upgrade) {
			u.Status.Phase, u.Status.Reason = api.UpgradePaused, "node b has gone back to 1"
		})}, "Warning cluster.upgrade node b has gone back to 1"},
		"an upgrade failed": {State{Upgrades: of(api.Upgrade{Meta: meta("upgrade")}, func(u *api.Upgrade) {
			u.Status.Phase, u.Status.Nodes = api.UpgradePaused, []api.UpgradeNode{{Phase: api.UpgradeNodeFailed}}
		})}, "Critical cluster.upgrade"},
		"an upgrade is to wait": {State{Upgrades: of(api.Upgrade{Meta: meta("upgrade")}, func(u *api.Upgrade) {
			u.Status.Phase, u.Spec.Paused = api.UpgradePaused, true
		})}, ""},
		"Ceph warns": {State{Ceph: of(api.CephCluster{Meta: meta("ceph")}, func(c *api.CephCluster) {
			c.Status = api.CephClusterStatus{Phase: api.CephReady, Health: api.CephWarning, Summary: "one disk is away", Next: "look at disk x"}
		})}, "Warning ceph.health one disk is away"},
		"Ceph fails":      {State{Ceph: of(api.CephCluster{Meta: meta("ceph")}, func(c *api.CephCluster) { c.Status.Health = api.CephError })}, "Critical ceph.health"},
		"no Ceph":         {State{Ceph: of(api.CephCluster{Meta: meta("ceph")}, func(c *api.CephCluster) { c.Status.Phase, c.Status.LastError = api.CephFailed, "no disk" })}, "Critical ceph.failed no disk"},
		"disk":            {State{Disks: of(api.Disk{Meta: meta("d")}, func(d *api.Disk) { d.Status.State, d.Status.Reason = api.DiskFailed, "I/O error" })}, "Critical disk.failed I/O error"},
		"target":          {State{Targets: of(api.BackupTarget{Meta: meta("t")}, func(x *api.BackupTarget) { x.Status.Phase = api.TargetFailed })}, "Critical backup-target.failed"},
		"backup":          {State{Backups: []api.Backup{backup(func(b *api.Backup) { b.Status.Phase, b.Status.LastError = api.BackupFailed, "no space" })}}, "Warning backup.failed no space"},
		"backup is late":  {State{Backups: []api.Backup{backup(func(b *api.Backup) { b.Assignment.Reason = "no node" })}}, "Warning backup.late no node"},
		"backup takes on": {State{Backups: []api.Backup{backup(func(b *api.Backup) { b.Status.Phase, b.Status.StartedAt = api.BackupRunning, ago(25*time.Hour) })}}, "Warning backup.late more than a day"},
		"a newer backup": {State{Backups: []api.Backup{backup(func(b *api.Backup) { b.Status.Phase = api.BackupFailed }), backup(func(b *api.Backup) {
			b.Meta.ID, b.Meta.CreatedAt, b.Status.Phase = "b2", now, api.BackupSucceeded
		})}}, ""},
		"image":          {State{Images: of(api.Image{Meta: meta("i")}, func(i *api.Image) { i.Status.Phase, i.Status.LastError = api.ImageFailed, "404" })}, "Warning image.failed 404"},
		"instance":       {State{Instances: of(api.Instance{Meta: meta("i")}, func(i *api.Instance) { i.Status.Phase, i.Status.LastError = api.InstanceFailed, "QEMU died" })}, "Warning instance.failed QEMU died"},
		"waits":          {State{Instances: []api.Instance{pendingInstance}}, "Warning instance.pending no node has room"},
		"waits a moment": {State{Instances: of(pendingInstance, func(i *api.Instance) { i.Meta.UpdatedAt = *ago(time.Minute) })}, ""},
		"is to be off":   {State{Instances: of(pendingInstance, func(i *api.Instance) { i.Spec.Power = api.PowerStopped })}, ""},
		"outside":        {State{External: of(api.ExternalNetwork{Meta: meta("e")}, func(n *api.ExternalNetwork) { n.Status.Phase = api.NetworkFailed })}, "Critical network.failed"},
		"network":        {State{Networks: of(api.Network{Meta: meta("n")}, func(n *api.Network) { n.Status.Phase = api.NetworkFailed })}, "Warning network.failed"},
		"router":         {State{Routers: of(api.Router{Meta: meta("r")}, func(r *api.Router) { r.Status.Phase, r.Assignment.Reason = api.NetworkFailed, "no address is left" })}, "Warning router.failed no address is left"},
		"mail": {State{Mail: []api.StoredMailSettings{{Spec: api.MailSettingsSpec{Enabled: true}}, {Status: api.MailStatus{Attempts: 3, LastError: "connection refused"}}}},
			"Warning mail.failing connection refused"},
		"mail that failed": {State{Mail: []api.StoredMailSettings{{Spec: api.MailSettingsSpec{Enabled: true}}, {Status: api.MailStatus{Failed: 1, FailedAt: &now}}}},
			"Warning mail.undelivered"},
		"mail that was returned": {State{Mail: []api.StoredMailSettings{{Spec: api.MailSettingsSpec{Enabled: true}}, {Status: api.MailStatus{Bounces: &api.MailBouncesStatus{Bounced: 1, BouncedAt: &now}}}}},
			"Warning mail.bounced"},
		"mailbox": {State{Mail: []api.StoredMailSettings{{Spec: api.MailSettingsSpec{Enabled: true}}, {Status: api.MailStatus{Bounces: &api.MailBouncesStatus{Attempts: 3, LastError: "connection refused"}}}}},
			"Warning mail.mailbox-failing connection refused"},
		"payments": {State{Payments: []api.StoredPaymentSettings{{}, {Status: api.PaymentProviderStatus{Attempts: 3, LastError: "connection refused"}}}},
			"Warning payments.failing connection refused"},
		"undecided taxes": {State{Taxes: []api.StoredTaxSettings{{Spec: api.TaxSettings{Undecided: true}}}}, "Critical taxes.undecided"},
		"VAT number that is not valid": {State{Organizations: []api.Organization{{Meta: api.Meta{ID: "org-1", Name: "acme"}}, {Meta: api.Meta{ID: "org-2", Name: "beta"}}},
			VATChecks: []api.VATCheck{{Meta: api.Meta{Organization: "org-1"}, Status: api.VATCheckStatus{State: api.VATInvalid, CheckedAt: &now}}, {Meta: api.Meta{Organization: "org-2"}, Status: api.VATCheckStatus{State: api.VATValid, Attempts: 2}}}}, "Warning vat.invalid acme"},
		"VIES gives no result": {State{Organizations: []api.Organization{{Meta: api.Meta{ID: "org-1", Name: "acme"}}},
			VATChecks: []api.VATCheck{{Meta: api.Meta{Organization: "org-1"}, Status: api.VATCheckStatus{State: api.VATPending, Attempts: 3, LastError: "MS_UNAVAILABLE"}}}}, "Warning vat.unverified acme: MS_UNAVAILABLE"},
		"VAT number of another business": {State{Organizations: []api.Organization{{Meta: api.Meta{ID: "org-1", Name: "acme"}}},
			VATChecks: []api.VATCheck{{Meta: api.Meta{Organization: "org-1"}, Status: api.VATCheckStatus{State: api.VATValid, Name: "ZENITH SA", NameDiffers: true, CheckedAt: &now}}}}, "Warning vat.name acme"},
		"VAT number of a deleted customer": {State{VATChecks: []api.VATCheck{{Meta: api.Meta{Organization: "org-1"}, Status: api.VATCheckStatus{State: api.VATInvalid, Attempts: 9}}}}, ""},
		"payments, once":                   {State{Payments: []api.StoredPaymentSettings{{Status: api.PaymentProviderStatus{Attempts: 2}}}}, ""},
		"suppressed":                       {State{Suppressions: []api.MailSuppression{{}, {Status: api.MailSuppressionStatus{SuppressedAt: &now}}}}, "Warning mail.suppressed"},
		"dispute": {State{Disputes: []api.Dispute{{Meta: meta("d"), Spec: api.DisputeSpec{Reason: "fraudulent"}, Status: api.DisputeStatus{State: api.DisputeNeedsResponse}}}},
			"Warning payment.disputed fraudulent"},
		"dispute, at the end":   {State{Disputes: []api.Dispute{{Meta: meta("d"), Status: api.DisputeStatus{State: api.DisputeInquiry, RespondBy: &now}}}}, "Critical payment.disputed"},
		"dispute, under review": {State{Disputes: []api.Dispute{{Meta: meta("d"), Status: api.DisputeStatus{State: api.DisputeUnderReview}}}}, ""},
		"mail is disabled":      {State{Mail: []api.StoredMailSettings{{}, {Status: api.MailStatus{Attempts: 3, LastError: "connection refused"}}}}, ""},
		"webhook":               {State{Webhooks: of(api.Webhook{Meta: meta("w")}, func(w *api.Webhook) { w.Status.Attempts, w.Status.LastError = 3, "connection refused" })}, "Warning webhook.failing connection refused"},
		"webhook once":          {State{Webhooks: of(api.Webhook{Meta: meta("w")}, func(w *api.Webhook) { w.Status.Attempts = 2 })}, ""},
		"webhook paused":        {State{Webhooks: of(api.Webhook{Meta: meta("w")}, func(w *api.Webhook) { w.Status.Attempts, w.Spec.Paused = 9, true })}, ""},
		"overdue": {State{Organizations: []api.Organization{
			{Meta: meta("well")}, {Meta: meta("b"), Status: api.OrganizationStatus{Billing: &api.BillingStatus{State: api.BillingWarn, Since: *ago(time.Hour)}}},
			{Meta: meta("a"), Status: api.OrganizationStatus{Billing: &api.BillingStatus{State: api.BillingStop, Since: *ago(2 * time.Hour)}}}}},
			"Warning invoice.overdue 2 customers with overdue invoices: a, b"},
		"audit trail changed":      {State{Audit: []api.AuditCheck{{Status: api.AuditCheckStatus{Changed: "entry 7", Unanchored: "no anchor"}}}}, "Critical audit.changed entry 7 + Warning audit.unanchored no anchor"},
		"audit trail not verified": {State{Audit: []api.AuditCheck{{Status: api.AuditCheckStatus{CheckedAt: *ago(25 * time.Hour)}}}}, "Warning audit.unanchored not been verified"},
		"to be deleted":            {State{Organizations: []api.Organization{{Meta: meta("b"), Status: api.OrganizationStatus{Billing: &api.BillingStatus{State: api.BillingDeleteDue, Since: now}}}}}, "Critical invoice.overdue 1 customer"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(c.s, now)
			var want []string
			if c.want != "" {
				want = strings.Split(c.want, " + ")
			}
			if len(got) != len(want) {
				t.Fatalf("alerts = %+v, want %q", got, want)
			}
			for i, a := range got {
				severity, rest, _ := strings.Cut(want[i], " ")
				code, words, _ := strings.Cut(rest, " ")
				if string(a.Severity) != severity || string(a.Code) != code || !strings.Contains(a.Message+" "+a.Hint, words) {
					t.Errorf("alert = %s %s %q with hint %q, want %q", a.Severity, a.Code, a.Message, a.Hint, want[i])
				}
				if words, ok := strings.CutSuffix(a.Message, a.Reason); !ok || a.Reason != "" && !strings.HasSuffix(words, ": ") {
					t.Errorf("alert %s = %q, want it to end with its reason %q", a.Code, a.Message, a.Reason)
				}
				tested[cmp.Or(string(a.Params.Variant), string(a.Code))] = true
				if a.Hint == "" {
					t.Errorf("alert %s has no hint, want one", a.Code)
				}
			}
		})
	}
	for _, code := range append(declared(t, "AlertCode"), declared(t, "AlertVariant")...) {
		if !tested[code] {
			t.Errorf("no case has alert %s, want one", code)
		}
	}
}

// TestParams checks the values that programs show in their own words.
func TestParams(t *testing.T) {
	lost := func(n *api.Node) { n.Assignment.State, n.Assignment.Reason = api.NodeLost, "no power" }
	dead := api.Cause{Code: api.CauseCrashed, Plain: true}
	full := api.Cause{Code: api.CauseNoRoom, Missing: api.MissingCPUs, Count: 8}
	vat := func(status api.VATCheckStatus) (s State) {
		for _, name := range []string{"f", "e", "d", "c", "b", "a"} {
			s.Organizations = append(s.Organizations, api.Organization{Meta: meta(name)})
			s.VATChecks = append(s.VATChecks, api.VATCheck{Meta: api.Meta{Organization: name}, Status: status})
		}
		return s
	}
	for name, c := range map[string]struct {
		s      State
		params api.AlertParams
		reason string
		cause  api.Cause
	}{
		"lost":  {State{Nodes: []api.Node{node("n", lost)}, Instances: of(runs("i"), func(*api.Instance) {})}, api.AlertParams{Count: 1}, "no power", api.Cause{}},
		"clock": {State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Status.SeenAt = *ago(-90 * time.Second) })}}, api.AlertParams{Seconds: 90}, "", api.Cause{}},
		"storage": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Pools = []api.StoragePool{{Name: "a", SizeBytes: 100, FreeBytes: 5}, {Name: "b", SizeBytes: 100, FreeBytes: 4}, {Name: "c", SizeBytes: 100, FreeBytes: 50}}
		})}}, api.AlertParams{Names: []string{"a", "b"}, Percent: 4}, "", api.Cause{}},
		"hardware": {State{Nodes: []api.Node{node("n", func(n *api.Node) {
			n.Status.Hardware = []api.HardwareCheck{{ID: api.HardwareMemory, State: api.HardwareWarning, Found: "7 errors", Advice: "Replace it."}}
		})}}, api.AlertParams{Variant: api.AlertHardwareWorse, Names: []string{"memory"}, Advice: "Replace it."}, "memory (7 errors)", api.Cause{}},
		"versions": {State{Nodes: []api.Node{node("a", nil), node("b", func(n *api.Node) { n.Status.Version = "0.9" })}}, api.AlertParams{Count: 2, Names: []string{"0.9 (b)", "1.0 (a)"}}, "", api.Cause{}},
		"certificate": {State{Nodes: []api.Node{node("a", nil)}, Members: []api.Member{{Node: "a", Name: "a", CertificateUntil: ago(time.Hour)}}},
			api.AlertParams{Variant: api.AlertCertificateExpired, Until: ago(time.Hour)}, "", api.Cause{}},
		"promised": {card(9<<30, 101), api.AlertParams{Bytes: 9 << 30, LimitBytes: 8 << 30, Percent: 101}, "", api.Cause{}},
		"Ceph": {State{Ceph: of(api.CephCluster{Meta: meta("ceph")}, func(c *api.CephCluster) {
			c.Status.Health, c.Status.Summary, c.Status.Next = api.CephError, "down", "look"
		})}, api.AlertParams{Variant: api.AlertCephError, Advice: "look"}, "down", api.Cause{}},
		"customers": {vat(api.VATCheckStatus{State: api.VATInvalid}), api.AlertParams{Count: 6, Names: []string{"a", "b", "c", "d", "e"}}, "", api.Cause{}},
		"failed": {State{Instances: of(runs("i"), func(i *api.Instance) {
			i.Status.Phase, i.Status.LastError, i.Status.Cause = api.InstanceFailed, "QEMU died", dead
		})}, api.AlertParams{}, "QEMU died", dead},
		"suspended": {State{Instances: of(api.Instance{Meta: meta("i")}, func(i *api.Instance) {
			i.Assignment.Hold, i.Assignment.Reason, i.Assignment.Cause = "unpaid", "full", full
		})}, api.AlertParams{}, "unpaid", api.Cause{Code: api.CauseSuspended, Plain: true}},
		"no room": {State{Instances: of(api.Instance{Meta: meta("i")}, func(i *api.Instance) { i.Assignment.Reason, i.Assignment.Cause = "full", full })}, api.AlertParams{}, "full", full},
		"no address": {State{Routers: of(api.Router{Meta: meta("r")}, func(r *api.Router) {
			r.Status.Phase, r.Assignment.Reason, r.Assignment.Cause = api.NetworkFailed, "full", full
		})}, api.AlertParams{}, "full", full},
	} {
		got := Of(c.s, now)
		if len(got) != 1 || !reflect.DeepEqual(got[0].Params, c.params) || got[0].Reason != c.reason || got[0].Cause != c.cause {
			t.Errorf("%s: alerts = %+v, want one with params %+v, reason %q and cause %+v", name, got, c.params, c.reason, c.cause)
		}
	}
}

func TestOrder(t *testing.T) {
	s := card(9<<30, 10)
	s.Nodes = []api.Node{node("b", func(n *api.Node) { n.Assignment.State = api.NodeSuspect }), node("a", func(n *api.Node) { n.Assignment.State = api.NodeSuspect })}
	s.Ceph = of(api.CephCluster{Meta: meta("ceph")}, func(c *api.CephCluster) { c.Status.Health = api.CephError })
	var got []string
	for _, a := range Of(s, now) {
		got = append(got, string(a.Code)+" "+a.ID)
	}
	if want := []string{"ceph.health ceph", "gpu.promised g", "node.suspect a", "node.suspect b"}; !slices.Equal(got, want) {
		t.Errorf("order of alerts = %q, want %q", got, want)
	}
	slices.Reverse(s.Nodes)
	if again := Of(s, now); again[2].ID != "a" {
		t.Errorf("alerts with another order of objects = %+v, want the same order", again)
	}
}

func TestSince(t *testing.T) {
	a := Of(State{Nodes: []api.Node{node("n", func(n *api.Node) { n.Assignment.State, n.Assignment.Since = api.NodeLost, ago(time.Hour) })}}, now)[0]
	if a.Since == nil || !a.Since.Equal(*ago(time.Hour)) || a.Kind != api.KindNode || a.ID != "n" || a.Name != "n" {
		t.Errorf("alert of a lost node = %+v, want one since an hour ago for node n", a)
	}
}
