package server

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// backupTargetSpec generates a password if there is none, validates, and seals the
// secrets.
func (h *handlers) backupTargetSpec(ctx context.Context, _ api.Meta, old *api.BackupTarget, s api.BackupTargetSpec) (api.BackupTargetSpec, error) {
	if old != nil {
		return h.changedTargetSpec(ctx, old.Spec, s)
	}
	if s.Password == "" {
		s.Password = rand.Text() // 128 bits
	}
	if err := api.ValidateBackupTarget(s); err != nil || h.opts.Secrets == nil {
		return s, err
	}
	return eachSecret(s, func(secret string) (string, error) { return h.opts.Secrets.Seal(ctx, secret) })
}

// changedTargetSpec returns the new spec. An unchanged secret keeps its sealed form, so
// that applying a file again changes nothing.
func (h *handlers) changedTargetSpec(ctx context.Context, old, s api.BackupTargetSpec) (api.BackupTargetSpec, error) {
	if h.opts.Secrets == nil {
		return api.ChangeBackupTarget(old, s)
	}
	seals := map[string]string{}
	plain, err := eachSecret(old, func(sealed string) (string, error) {
		secret, err := h.opts.Secrets.Open(ctx, sealed)
		if err != nil {
			return "", fmt.Errorf("decrypt a secret of a backup target: %w", err)
		}
		seals[secret] = sealed
		return secret, nil
	})
	if err != nil {
		return s, err
	}
	if s, err = api.ChangeBackupTarget(plain, s); err != nil {
		return s, err
	}
	return eachSecret(s, func(secret string) (string, error) {
		if sealed := seals[secret]; sealed != "" {
			return sealed, nil
		}
		return h.opts.Secrets.Seal(ctx, secret)
	})
}

// eachSecret returns the spec with f applied to each secret that is set.
func eachSecret(s api.BackupTargetSpec, f func(string) (string, error)) (api.BackupTargetSpec, error) {
	secrets := []*string{&s.Password}
	if s.S3 != nil {
		c := *s.S3
		s.S3, secrets = &c, append(secrets, &c.SecretKey)
	}
	for _, x := range secrets {
		if *x == "" {
			continue
		}
		var err error
		if *x, err = f(*x); err != nil {
			return s, err
		}
	}
	return s, nil
}
