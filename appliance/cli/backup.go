package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) backups() *kind[api.Backup] {
	return &kind[api.Backup]{
		app: a, noun: "backup", about: "Backups of volumes",

		refs: []api.Kind{api.KindVolume, api.KindBackupTarget},
		remove: func(f *pflag.FlagSet) func(context.Context, string) (api.Backup, error) {
			forget := f.Bool("forget", false, "keep the data in the target: use when the target is permanently gone (operators)")
			return func(ctx context.Context, id string) (api.Backup, error) { return a.api.DeleteBackup(ctx, id, *forget) }
		},
		columns: []string{"PHASE", "VOLUME", "TARGET", "SIZE", "NEW", "NOTE"},
		row: func(b api.Backup) []string {
			return []string{backupDoing(b), a.namedResource(a.named(string(b.Spec.Volume)), ""), a.named(string(b.Spec.Target)), formatSize(b.Spec.SizeBytes),
				formatSize(b.Status.AddedBytes), cmp.Or(b.Status.LastError, b.Assignment.Reason)}
		},
		ready: func(b api.Backup) (bool, string, error) {
			if b.Status.Phase == api.BackupFailed {
				return false, backupDoing(b), api.Errorf(api.CodeState, "backup %s failed: %s", b.Meta.Name, b.Status.LastError)
			}
			return b.Status.Phase == api.BackupSucceeded, backupDoing(b), nil
		},
		flags: func(f *pflag.FlagSet) func(*api.Backup) error {
			volume, target := f.String("volume", "", "volume, name or ID"), f.String("target", "", "backup target, name or ID")
			return func(b *api.Backup) error {
				b.Spec.Volume, b.Spec.Target = cmp.Or(api.VolumeID(*volume), b.Spec.Volume), cmp.Or(api.BackupTargetID(*target), b.Spec.Target)
				return nil
			}
		},
	}
}

func backupDoing(b api.Backup) string {
	if b.Meta.DeletedAt != nil {
		return string(api.BackupDeleting)
	}
	doing := string(cmp.Or(b.Status.Phase, api.BackupPending))
	if b.Status.Phase == api.BackupRunning && b.Status.TotalBytes > 0 {
		doing += fmt.Sprintf(" %d%%", 100*b.Status.ProgressBytes/b.Status.TotalBytes)
	}
	return doing
}

func (a *App) backupTargets() *kind[api.BackupTarget] {
	return &kind[api.BackupTarget]{
		app: a, noun: "backup-target", about: "Locations where backups are stored",
		columns: []string{"PHASE", "WHERE", "NOTE"},
		row: func(t api.BackupTarget) []string {
			where := t.Spec.Directory
			if s := t.Spec.S3; s != nil {
				where = s.Endpoint + "/" + s.Bucket
			}
			return []string{string(cmp.Or(t.Status.Phase, api.TargetPending)), where, t.Status.LastError}
		},
		ready: func(t api.BackupTarget) (bool, string, error) {
			if t.Status.Phase == api.TargetFailed {
				return false, string(t.Status.Phase), api.Errorf(api.CodeState, "backup target %s: %s", t.Meta.Name, t.Status.LastError)
			}
			return t.Status.Phase == api.TargetReady, string(t.Status.Phase), nil
		},
		flags: backupTargetFlags,
	}
}

// backupTargetFlags reads secrets from files only: other users can see command lines.
func backupTargetFlags(f *pflag.FlagSet) func(*api.BackupTarget) error {
	directory := f.String("directory", "", "absolute path available on every node, e.g. a mounted share")
	endpoint := f.String("s3-endpoint", "", "endpoint URL, e.g. https://s3.example")
	bucket := f.String("s3-bucket", "", "bucket")
	region := f.String("s3-region", "", "region, if the server requires one")
	access := f.String("s3-access-key", "", "access key")
	secret := f.String("s3-secret-key-file", "", "file with the secret key")
	password := f.String("password-file", "", "file with the encryption password; generated if not given")
	return func(t *api.BackupTarget) error {
		s := &t.Spec
		s.Directory = cmp.Or(*directory, s.Directory)
		if *endpoint+*bucket+*region+*access+*secret != "" {
			n := api.S3Target{}
			if s.S3 != nil {
				n = *s.S3
			}
			n.Endpoint, n.Bucket, n.Region, n.AccessKey = cmp.Or(*endpoint, n.Endpoint), cmp.Or(*bucket, n.Bucket), cmp.Or(*region, n.Region), cmp.Or(*access, n.AccessKey)
			if err := secretFile(*secret, &n.SecretKey); err != nil {
				return err
			}
			s.S3 = &n
		}
		return secretFile(*password, &s.Password)
	}
}

func secretFile(path string, into *string) error {
	if path == "" {
		return nil
	}
	raw, err := os.ReadFile(path)
	*into = strings.TrimSpace(string(raw))
	return err
}
