package api

import (
	"net/url"
	"path/filepath"
	"regexp"
)

const (
	maxSecretBytes   = 1024
	minPasswordBytes = 12
)

// bucketPattern allows more than S3 does, since some servers accept capitals and '_'.
var bucketPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$`)

// ValidateBackupTarget checks a spec with its password.
func ValidateBackupTarget(s BackupTargetSpec) error {
	var bad faults
	if (s.Directory == "") == (s.S3 == nil) {
		bad.note(invalid("spec.directory", "must be either a directory or an S3 bucket").WithHint("set one of spec.directory and spec.s3"))
		return bad.err()
	}
	if len(s.Password) < minPasswordBytes || len(s.Password) > maxSecretBytes || hasControl(s.Password) {
		bad.note(invalid("spec.password", "must have %d to %d bytes", minPasswordBytes, maxSecretBytes).WithHint("omit it to generate one"))
	}
	switch {
	case s.S3 != nil:
		bad.note(s3(*s.S3))
	case !filepath.IsAbs(s.Directory) || filepath.Clean(s.Directory) != s.Directory || s.Directory == "/" || hasControl(s.Directory) || len(s.Directory) > maxSecretBytes:
		bad.note(invalid("spec.directory", "%q is not an absolute path", clip(s.Directory)).WithHint("e.g. /srv/backup"))
	}
	return bad.err()
}

func s3(s S3Target) error {
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || hasControl(s.Endpoint) || len(s.Endpoint) > maxSecretBytes:
		return invalid("spec.s3.endpoint", "%q is not a valid endpoint", clip(s.Endpoint)).WithHint("e.g. https://s3.example")
	case !bucketPattern.MatchString(s.Bucket):
		return invalid("spec.s3.bucket", "%q is not a valid bucket name", clip(s.Bucket))
	case len(s.AccessKey) > maxSecretBytes || hasControl(s.AccessKey):
		return invalid("spec.s3.accessKey", "must have at most %d bytes and no control characters", maxSecretBytes)
	case len(s.SecretKey) > maxSecretBytes || hasControl(s.SecretKey):
		return invalid("spec.s3.secretKey", "must have at most %d bytes and no control characters", maxSecretBytes)
	}
	return joined(text("spec.s3.region", s.Region))
}

// ChangeBackupTarget returns the new spec, completed with the secrets that were left
// out. Fields that existing backups depend on cannot change.
func ChangeBackupTarget(old, s BackupTargetSpec) (BackupTargetSpec, error) {
	if s.Password == "" {
		s.Password = old.Password
	}
	if s.S3 != nil && old.S3 != nil && s.S3.SecretKey == "" {
		c := *s.S3
		c.SecretKey = old.S3.SecretKey
		s.S3 = &c
	}
	switch {
	case s.Password != old.Password:
		return s, invalid("spec.password", "cannot change: existing backups are encrypted with it").WithHint("create another target")
	case s.Directory != old.Directory, (s.S3 == nil) != (old.S3 == nil), s.S3 != nil && s.S3.Bucket != old.S3.Bucket:
		return s, invalid("spec", "the location of a backup target cannot change").WithHint("create another target")
	}
	return s, ValidateBackupTarget(s)
}
