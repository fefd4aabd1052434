package server

import (
	"context"
	"crypto/rsa"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
)

// minRSABits is the least length of an RSA key: NIST SP 800-131A disallows shorter
// ones.
const minRSABits = 2048

// sshKeyTypes are the accepted types; DSA and certificates are not.
var sshKeyTypes = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA,
	ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256}

// parseSSHKey parses a line of a .pub file.
func parseSSHKey(field, line string) (ssh.PublicKey, string, error) {
	bad := func(format string, args ...any) error {
		return api.Errorf(api.CodeInvalid, format, args...).At(field).WithHint("one line of ~/.ssh/id_ed25519.pub")
	}
	key, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil && strings.Contains(line, "PRIVATE KEY"):
		return nil, "", bad("this is a private key; give the public one, from the file that ends in .pub")
	case err != nil:
		return nil, "", bad("%.40q is not an SSH public key", line)
	case len(options) > 0:
		return nil, "", bad("options before the key are not supported: %.40q", options[0])
	case len(rest) > 0:
		return nil, "", bad("more than one key")
	case !slices.Contains(sshKeyTypes, key.Type()):
		return nil, "", bad("keys of type %.40q are not supported; use Ed25519, ECDSA or RSA", key.Type())
	}
	if c, ok := key.(ssh.CryptoPublicKey); ok {
		if k, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok && k.N.BitLen() < minRSABits {
			return nil, "", bad("an RSA key of %d bits is too short, want at least %d", k.N.BitLen(), minRSABits)
		}
	}
	return key, comment, nil
}

// keyLine formats a key as in authorized_keys, without a line break.
func keyLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// sshKeySpec checks a new key of the user, and fills in what the key itself contains.
func (h *handlers) sshKeySpec(u api.User, s api.SSHKeySpec) (api.SSHKeySpec, error) {
	if err := api.ValidateSSHKey(s, h.opts.Now()); err != nil {
		return s, err
	}
	key, _, err := parseSSHKey("spec.publicKey", s.PublicKey)
	if err != nil {
		return s, err
	}
	s.PublicKey, s.Type, s.Fingerprint, s.User = keyLine(key), key.Type(), ssh.FingerprintSHA256(key), api.UserID(u.Meta.ID)
	return s, nil
}

// sshKeysOf returns the keys of a user. The store keeps the user's ID as their project,
// for which it has an index.
func (h *handlers) sshKeysOf(ctx context.Context, user api.UserID) ([]api.SSHKey, error) {
	return all[api.SSHKey](ctx, h, api.ListQuery{Kind: api.KindSSHKey, Project: string(user)})
}

// CreateSSHKey stores a public key of the caller.
func (h *handlers) CreateSSHKey(ctx context.Context, r in[api.CreateSSHKeyParams, api.SSHKey]) (*api.SSHKey, error) {
	u, err := h.auth.Me(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the user of the caller: %w", err)
	}
	asked := r.Body.Meta
	scopeErr := noScope(api.KindSSHKey.Info(), asked)
	spec, specErr := h.sshKeySpec(u, r.Body.Spec)
	if err := api.Join(scopeErr, validateName(api.KindSSHKey, asked.Name), api.ValidateLabels(asked.Labels), specErr); err != nil {
		return nil, err
	}
	mine, err := h.sshKeysOf(ctx, api.UserID(u.Meta.ID))
	if err != nil {
		return nil, err
	}
	batch, err := batchID(ctx, api.KindSSHKey, r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	same := slices.IndexFunc(mine, func(k api.SSHKey) bool { return k.Spec.Fingerprint == spec.Fingerprint })
	switch {
	case same >= 0 && (batch == "" || mine[same].Meta.Name != asked.Name):
		return nil, api.Errorf(api.CodeExists, "you have this key already: it is called %s", mine[same].Meta.Name).At("spec.publicKey")
	case same < 0 && len(mine) >= api.MaxSSHKeys:
		return nil, api.Errorf(api.CodeQuota, "you have %d SSH keys, which is the limit", len(mine)).WithHint("delete one that is not used any more")
	}
	out, err := h.opts.Store.Apply(ctx, api.Batch{ID: batch, At: h.opts.Now().UTC(), Commands: []api.Command{{
		Op: api.OpPutSpec, Kind: api.KindSSHKey, ID: newID(api.KindSSHKey), Name: asked.Name, Organization: u.Meta.Organization, Project: u.Meta.ID,
		Labels: asked.Labels, Data: api.Encode(spec)}}})
	if err != nil {
		return nil, named(err, api.KindSSHKey, asked.Name)
	}
	k, err := decode[api.SSHKey](out[0])
	return &k, err
}

// ListSSHKeys pages through the caller's own keys.
func (h *handlers) ListSSHKeys(ctx context.Context, r in[listParams[inCluster], none]) (*page[api.SSHKey], error) {
	u, err := h.auth.Me(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the user of the caller: %w", err)
	}
	q := r.Params.query()
	q.owner = api.UserID(u.Meta.ID)
	p, err := list[api.SSHKey](ctx, h, api.KindSSHKey, q)
	return &p, err
}

// ownSSHKey returns one of the caller's keys, by ID or name.
func (h *handlers) ownSSHKey(ctx context.Context, ref string) (api.SSHKey, error) {
	u, err := h.auth.Me(ctx)
	if err != nil {
		return api.SSHKey{}, fmt.Errorf("read the user of the caller: %w", err)
	}
	mine, err := h.sshKeysOf(ctx, api.UserID(u.Meta.ID))
	if err != nil {
		return api.SSHKey{}, err
	}
	for _, k := range mine {
		if k.Meta.ID == ref || k.Meta.Name == ref {
			return k, nil
		}
	}
	return api.SSHKey{}, notFound(api.KindSSHKey, ref)
}

// GetSSHKey returns one of the caller's keys.
func (h *handlers) GetSSHKey(ctx context.Context, r in[none, none]) (*api.SSHKey, error) {
	k, err := h.ownSSHKey(ctx, r.ID)
	k.Meta.Project = ""
	return &k, err
}

// DeleteSSHKey deletes one of the caller's keys.
func (h *handlers) DeleteSSHKey(ctx context.Context, r in[none, none]) (*api.SSHKey, error) {
	k, err := h.ownSSHKey(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	k, err = remove[api.SSHKey](ctx, h, api.KindSSHKey, k.Meta.ID)
	return &k, err
}

// authorizedKeys replaces names and IDs of the caller's SSH keys with their lines, and
// parses the others, which must be lines of authorized_keys. Lines that the instance
// already has are kept.
func (h *handlers) authorizedKeys(ctx context.Context, asked, had []string) ([]string, error) {
	var mine []api.SSHKey
	var bad []error
	out := make([]string, 0, len(asked))
	for i, text := range asked {
		field, line := fmt.Sprintf("spec.sshKeys[%d]", i), strings.TrimSpace(text)
		switch {
		case slices.Contains(had, text):
			out = append(out, text)
			continue
		case strings.ContainsAny(line, " \t"):
			if _, _, err := parseSSHKey(field, line); err != nil {
				bad = append(bad, err)
			}
		default:
			found, err := h.sshKeyNamed(ctx, field, line, &mine)
			if err != nil {
				bad = append(bad, err)
			}
			line = found
		}
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	if err := api.Join(bad...); err != nil {
		return nil, err
	}
	return out, nil
}

// sshKeyNamed returns the line of one of the caller's keys. mine is filled on the first
// call that needs it.
func (h *handlers) sshKeyNamed(ctx context.Context, field, ref string, mine *[]api.SSHKey) (string, error) {
	user := who(ctx).User
	if user == "" {
		return "", api.Errorf(api.CodeInvalid, "%.40q is not an SSH public key, and an API key has no SSH keys to name", ref).At(field).
			WithHint("give the public key itself: one line of ~/.ssh/id_ed25519.pub")
	}
	if *mine == nil {
		var err error
		if *mine, err = h.sshKeysOf(ctx, user); err != nil {
			return "", err
		}
	}
	for _, k := range *mine {
		if k.Meta.ID == ref || k.Meta.Name == ref {
			if expired(k, h.opts.Now()) {
				return "", api.Errorf(api.CodeInvalid, "your SSH key %s has expired", k.Meta.Name).At(field)
			}
			return k.Spec.PublicKey + " " + k.Meta.Name, nil
		}
	}
	return "", api.Errorf(api.CodeInvalid, "you have no SSH key that is called %.40q, and it is not a public key", ref).At(field).
		WithHint("one line of ~/.ssh/id_ed25519.pub, or the name of one of your SSH keys")
}

// expired reports whether a key has expired.
func expired(k api.SSHKey, now time.Time) bool {
	return k.Spec.ExpiresAt != nil && !now.Before(*k.Spec.ExpiresAt)
}
