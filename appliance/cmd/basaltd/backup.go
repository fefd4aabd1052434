package main

import (
	"context"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/secrets"
	"github.com/basalt-gpu/basalt/sds/backup"
)

// backups implements agent.Backups with restic. The secrets of targets are sealed with the
// cluster's key ring in the store.
type backups struct {
	tool    *backup.Tool
	secrets *secrets.KeyStore
}

// openBackups opens restic's folders. It also unmounts what an earlier process has left
// mounted.
func openBackups(c config, secrets *secrets.KeyStore) (backups, error) {
	tool, err := backup.Open(backup.Tool{Dir: filepath.Join(c.run, "backup"), Cache: filepath.Join(c.data, "backup-cache")})
	return backups{tool, secrets}, err
}

// target returns the target with its secrets opened. They are passed only to restic's
// environment.
func (b backups) target(ctx context.Context, t api.BackupTarget) (out backup.Target, err error) {
	out.Directory = t.Spec.Directory
	if out.Password, err = b.secrets.Open(ctx, t.Spec.Password); err != nil {
		return out, err
	}
	if s := t.Spec.S3; s != nil {
		out.S3 = &backup.S3{Endpoint: s.Endpoint, Bucket: s.Bucket, Region: s.Region, AccessKey: s.AccessKey}
		if s.SecretKey != "" {
			out.S3.SecretKey, err = b.secrets.Open(ctx, s.SecretKey)
		}
	}
	return out, err
}

// Prepare implements agent.Backups.
func (b backups) Prepare(ctx context.Context, t api.BackupTarget) error {
	to, err := b.target(ctx, t)
	if err != nil {
		return err
	}
	return b.tool.Prepare(ctx, to)
}

// Answers implements agent.Backups.
func (b backups) Answers(ctx context.Context, t api.BackupTarget) error {
	to, err := b.target(ctx, t)
	if err != nil {
		return err
	}
	return b.tool.Answers(ctx, to)
}

// Run implements agent.Backups.
func (b backups) Run(ctx context.Context, t api.BackupTarget, from backup.Disk, id api.BackupID, progress func(backup.Progress)) (backup.Result, error) {
	to, err := b.target(ctx, t)
	if err != nil {
		return backup.Result{}, err
	}
	return b.tool.Run(ctx, to, from, id, progress)
}

// Restore implements agent.Backups.
func (b backups) Restore(ctx context.Context, t api.BackupTarget, id api.BackupID, into backup.Disk, progress func(backup.Progress)) error {
	from, err := b.target(ctx, t)
	if err != nil {
		return err
	}
	return b.tool.Restore(ctx, from, id, into, progress)
}

// MachineState implements agent.Backups.
func (b backups) MachineState(ctx context.Context, t api.BackupTarget, id api.BackupID) ([]byte, error) {
	from, err := b.target(ctx, t)
	if err != nil {
		return nil, err
	}
	return b.tool.MachineState(ctx, from, id)
}

// Delete implements agent.Backups.
func (b backups) Delete(ctx context.Context, t api.BackupTarget, id api.BackupID) error {
	from, err := b.target(ctx, t)
	if err != nil {
		return err
	}
	return b.tool.Delete(ctx, from, id)
}
