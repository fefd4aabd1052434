package alerts

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	backupWaits = time.Hour      // until it begins
	backupRuns  = 24 * time.Hour // until it ends
)

func (l *list) storage(s State) {
	for _, c := range s.Ceph {
		what, st := about{api.KindCephCluster, c.Meta}, c.Status
		next, params := cmp.Or(st.Next, "basalt ceph status"), api.AlertParams{Advice: st.Next}
		switch {
		case st.Phase == api.CephFailed:
			l.critical(api.AlertCephFailed, what, nil, says("Ceph cannot be set up").because(st.LastError).with(params), next)
		case st.Health == api.CephError:
			l.critical(api.AlertCephHealth, what, nil, says("Ceph reports an error").because(st.Summary).with(api.AlertParams{Variant: api.AlertCephError, Advice: st.Next}), next)
		case st.Health == api.CephWarning:
			l.warning(api.AlertCephHealth, what, nil, says("Ceph reports a warning").because(st.Summary).with(params), next)
		}
	}
	for _, d := range s.Disks {
		if d.Status.State == api.DiskFailed {
			l.critical(api.AlertDiskFailed, about{api.KindDisk, d.Meta}, nil, says("disk "+d.Meta.Name+" has failed").because(d.Status.Reason),
				"release it and replace it: basalt disk release "+d.Meta.Name)
		}
	}
	for _, t := range s.Targets {
		if t.Status.Phase == api.TargetFailed {
			l.critical(api.AlertTargetFailed, about{api.KindBackupTarget, t.Meta}, nil, says("backup target "+t.Meta.Name+" is not reachable").because(t.Status.LastError).of(t.Status.Cause),
				"check its directory or bucket, and its keys")
		}
	}
	l.backups(s.Backups)
}

// backups adds alerts for failed backups. Only the newest backup of each volume and
// target counts.
func (l *list) backups(all []api.Backup) {
	type copied struct {
		volume api.VolumeID
		target api.BackupTargetID
	}
	newest := map[copied]api.Backup{}
	for _, b := range all {
		k := copied{b.Spec.Volume, b.Spec.Target}
		if old, ok := newest[k]; !ok || b.Meta.CreatedAt.After(old.Meta.CreatedAt) || b.Meta.CreatedAt.Equal(old.Meta.CreatedAt) && b.Meta.ID > old.Meta.ID {
			newest[k] = b
		}
	}
	for _, b := range newest {
		what, st := about{api.KindBackup, b.Meta}, b.Status
		switch {
		case b.Meta.DeletedAt != nil:
		case st.Phase == api.BackupFailed:
			since := b.Meta.CreatedAt
			if st.EndedAt != nil {
				since = *st.EndedAt
			}
			l.warning(api.AlertBackupFailed, what, &since, says("backup "+b.Meta.Name+" has failed").because(st.LastError).of(st.Cause), "create another backup")
		case st.Phase == api.BackupRunning && st.StartedAt != nil && l.now.Sub(*st.StartedAt) > backupRuns:
			l.warning(api.AlertBackupLate, what, st.StartedAt, says("backup "+b.Meta.Name+" has been running for more than a day").with(api.AlertParams{Variant: api.AlertBackupRunning}), "check its target and the network to it")
		case (st.Phase == "" || st.Phase == api.BackupPending) && l.now.Sub(b.Meta.CreatedAt) > backupWaits:
			l.warning(api.AlertBackupLate, what, &b.Meta.CreatedAt, says("backup "+b.Meta.Name+" has not started").because(b.Assignment.Reason).of(b.Assignment.Cause), "check the node that stores the volume")
		}
	}
}
