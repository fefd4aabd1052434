package client

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Snapshots are the collection of kind Snapshot.
func (a *API) Snapshots() Collection[api.Snapshot] {
	return Collection[api.Snapshot]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListSnapshots(ctx, &api.ListSnapshotsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetSnapshot(ctx, ref, &api.GetSnapshotParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.Snapshot) (*http.Response, error) {
			return a.gen.CreateSnapshot(ctx, &api.CreateSnapshotParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Snapshot) (*http.Response, error) {
			return a.gen.UpdateSnapshot(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteSnapshot(ctx, id) },
	}
}

// BackupTargets are the collection of kind BackupTarget.
func (a *API) BackupTargets() Collection[api.BackupTarget] {
	return Collection[api.BackupTarget]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListBackupTargets(ctx, &api.ListBackupTargetsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetBackupTarget(ctx, ref)
		},
		create: func(ctx context.Context, o api.BackupTarget) (*http.Response, error) {
			return a.gen.CreateBackupTarget(ctx, &api.CreateBackupTargetParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.BackupTarget) (*http.Response, error) {
			return a.gen.UpdateBackupTarget(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteBackupTarget(ctx, id) },
	}
}

// Backups are the collection of kind Backup.
func (a *API) Backups() Collection[api.Backup] {
	return Collection[api.Backup]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListBackups(ctx, &api.ListBackupsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetBackup(ctx, ref, &api.GetBackupParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.Backup) (*http.Response, error) {
			return a.gen.CreateBackup(ctx, &api.CreateBackupParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Backup) (*http.Response, error) {
			return a.gen.UpdateBackup(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) {
			return a.gen.DeleteBackup(ctx, id, &api.DeleteBackupParams{})
		},
	}
}

// DeleteBackup deletes a backup; with forget what is in its target stays there.
func (a *API) DeleteBackup(ctx context.Context, id string, forget bool) (api.Backup, error) {
	return decode[api.Backup](a.gen.DeleteBackup(ctx, id, &api.DeleteBackupParams{Forget: forget})) //nolint:bodyclose // decode closes it
}

// Disks are the collection of kind Disk.
func (a *API) Disks() Collection[api.Disk] {
	return Collection[api.Disk]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListDisks(ctx, &api.ListDisksParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetDisk(ctx, ref)
		},
		update: func(ctx context.Context, id string, o api.Disk) (*http.Response, error) {
			return a.gen.UpdateDisk(ctx, id, o)
		},
	}
}

// CephClusters are the collection of kind CephCluster.
func (a *API) CephClusters() Collection[api.CephCluster] {
	return Collection[api.CephCluster]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListCephClusters(ctx, &api.ListCephClustersParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetCephCluster(ctx, ref)
		},
		create: func(ctx context.Context, o api.CephCluster) (*http.Response, error) {
			return a.gen.CreateCephCluster(ctx, &api.CreateCephClusterParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.CephCluster) (*http.Response, error) {
			return a.gen.UpdateCephCluster(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteCephCluster(ctx, id) },
	}
}
