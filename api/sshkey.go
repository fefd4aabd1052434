package api

import "time"

// MaxSSHKeys of one user.
const MaxSSHKeys = 100

// ValidateSSHKey checks what a client says of a key besides the key itself, which
// api/server parses.
func ValidateSSHKey(s SSHKeySpec, now time.Time) error {
	var bad faults
	if hasControl(s.PublicKey) {
		bad.note(invalid("spec.publicKey", "more than one line").WithHint("one line, as in ~/.ssh/id_ed25519.pub"))
	}
	if len(s.PublicKey) > maxSSHKeySize {
		bad.note(invalid("spec.publicKey", "%d bytes, at most %d", len(s.PublicKey), maxSSHKeySize))
	}
	for field, made := range map[string]string{"spec.type": s.Type, "spec.fingerprint": s.Fingerprint, "spec.user": string(s.User)} {
		if made != "" {
			bad.note(invalid(field, "the server fills it in").WithHint("leave it out"))
		}
	}
	if s.ExpiresAt != nil && !s.ExpiresAt.After(now) {
		bad.note(invalid("spec.expiresAt", "it is in the past"))
	}
	return bad.err()
}

// WithoutSSH reports whether nobody was given a way into a new instance: no key, and
// no user data, which may set a password. An app brings its own user data.
func WithoutSSH(s InstanceSpec) bool { return len(s.SSHKeys) == 0 && s.UserData == "" }
