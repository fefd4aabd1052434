package api

import (
	"encoding/hex"
	"net/url"
	"regexp"
)

// Image formats.
const (
	FormatQCOW2 = "qcow2"
	FormatRaw   = "raw"
	FormatISO   = "iso" // of discs, such as installation media
)

// ValidateImage checks a spec.
func ValidateImage(s ImageSpec) error {
	var bad faults
	bad.note(oneOf("spec.format", s.Format, FormatQCOW2, FormatRaw, FormatISO))
	s.Abilities.validate(&bad)
	if s.Sha256 != "" {
		if raw, err := hex.DecodeString(s.Sha256); err != nil || len(raw) != 32 {
			bad.note(invalid("spec.sha256", "%q is not a SHA-256 sum", clip(s.Sha256)).WithHint("want 64 hexadecimal digits as printed by sha256sum"))
		}
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || len(s.URL) > 2048 || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			bad.note(invalid("spec.url", "%q is not a valid URL of an image", clip(s.URL)).WithHint("want http:// or https://"))
		}
	}
	bad.note(defaultUser(s.DefaultUser))
	return bad.err()
}

// userForm is the pattern of user names that useradd(8) accepts.
var userForm = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// defaultUser checks the name of a user in a guest; empty: unknown.
func defaultUser(name string) *Error {
	if name != "" && !userForm.MatchString(name) {
		return invalid("spec.defaultUser", "%q is not a valid user name", clip(name)).WithHint("e.g. debian: up to 32 of a-z, 0-9, _ and -")
	}
	return nil
}

// ChangeImage checks which fields of an existing image change.
func ChangeImage(old, s ImageSpec) error {
	if old.Format != s.Format || old.Sha256 != s.Sha256 || old.URL != s.URL {
		return Errorf(CodeInvalid, "the content of an image cannot change").At("spec").WithHint("import another image")
	}
	return nil
}
