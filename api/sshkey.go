package api

import (
	"fmt"
	"time"
)

// MaxSSHKeys limits the SSH keys of one user.
const MaxSSHKeys = 100

// ValidateSSHKey checks everything about a key except the key itself, which api/server
// parses.
func ValidateSSHKey(s SSHKeySpec, now time.Time) error {
	var bad faults
	if hasControl(s.PublicKey) {
		bad.note(invalid("spec.publicKey", "must be a single line").WithHint("e.g. the line in ~/.ssh/id_ed25519.pub"))
	}
	if len(s.PublicKey) > maxSSHKeySize {
		bad.note(invalid("spec.publicKey", "has %d bytes, want at most %d", len(s.PublicKey), maxSSHKeySize))
	}
	for field, made := range map[string]string{"spec.type": s.Type, "spec.fingerprint": s.Fingerprint, "spec.user": string(s.User)} {
		if made != "" {
			bad.note(invalid(field, "must be empty: the server sets it").WithHint("omit it"))
		}
	}
	if s.ExpiresAt != nil && !s.ExpiresAt.After(now) {
		bad.note(invalid("spec.expiresAt", "must be in the future"))
	}
	return bad.err()
}

// WithoutSSH reports whether nobody can sign in to a new instance: it has no key, and
// no user data, which may set a password. The user data of an app must already be
// filled in.
func WithoutSSH(s InstanceSpec) bool { return len(s.SSHKeys) == 0 && s.UserData == "" }

// AuthorityLine returns the line of authorized_keys that lets a guest accept
// certificates of the SSH gateway's CA for this instance: their principal is the
// instance's ID (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
func AuthorityLine(ca string, id InstanceID) string {
	return fmt.Sprintf("cert-authority,principals=%q %s basalt-ssh-gateway", string(id), ca)
}
