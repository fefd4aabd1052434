package server

import (
	"context"
	"crypto/rand"

	"github.com/basalt-gpu/basalt/api"
)

// backupTargetSpec makes a password where there is none, validates, and seals
// what is secret.
func (h *handlers) backupTargetSpec(ctx context.Context, s api.BackupTargetSpec) (api.BackupTargetSpec, error) {
	if s.Password == "" {
		s.Password = rand.Text() // 128 bits
	}
	if err := api.ValidateBackupTarget(s); err != nil || h.opts.Secrets == nil {
		return s, err
	}
	return eachSecret(s, func(secret string) (string, error) { return h.opts.Secrets.Seal(ctx, secret) })
}

// changedTargetSpec is the new spec. What is secret and stays the same keeps its
// seal, so that a file that is applied again changes nothing.
func (h *handlers) changedTargetSpec(ctx context.Context, old, s api.BackupTargetSpec) (api.BackupTargetSpec, error) {
	if h.opts.Secrets == nil {
		return api.ChangeBackupTarget(old, s)
	}
	seals := map[string]string{}
	plain, err := eachSecret(old, func(sealed string) (string, error) {
		secret, err := h.opts.Secrets.Open(ctx, sealed)
		seals[secret] = sealed
		return secret, err
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

// eachSecret is the spec with its secrets, where it has any, as f makes them.
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

// ListBackupTargets pages through what the caller sees.
func (h *handlers) ListBackupTargets(ctx context.Context, r in[api.ListBackupTargetsParams, none]) (*page[api.BackupTarget], error) {
	p, err := list[api.BackupTarget](ctx, h, api.KindBackupTarget, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateBackupTarget makes one.
func (h *handlers) CreateBackupTarget(ctx context.Context, r in[api.CreateBackupTargetParams, api.BackupTarget]) (*api.BackupTarget, error) {
	m, err := h.place(ctx, api.KindBackupTarget, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.backupTargetSpec(ctx, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.BackupTarget](ctx, h, api.KindBackupTarget, newID(api.KindBackupTarget), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetBackupTarget by id or name.
func (h *handlers) GetBackupTarget(ctx context.Context, r in[none, none]) (*api.BackupTarget, error) {
	o, err := get[api.BackupTarget](ctx, h, api.KindBackupTarget, r.ID, "", "")
	return &o, err
}

// UpdateBackupTarget changes name, labels and spec.
func (h *handlers) UpdateBackupTarget(ctx context.Context, r in[none, api.BackupTarget]) (*api.BackupTarget, error) {
	o, err := update(ctx, h, api.KindBackupTarget, r.ID, r.Body.Meta, func(old api.BackupTarget) (any, error) {
		return h.changedTargetSpec(ctx, old.Spec, r.Body.Spec)
	})
	return &o, err
}

// DeleteBackupTarget deletes one that nothing uses.
func (h *handlers) DeleteBackupTarget(ctx context.Context, r in[none, none]) (*api.BackupTarget, error) {
	o, err := remove[api.BackupTarget](ctx, h, api.KindBackupTarget, r.ID)
	return &o, err
}
