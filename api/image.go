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
)

// ValidateImage checks a spec.
func ValidateImage(s ImageSpec) error {
	var bad faults
	bad.note(oneOf("spec.format", s.Format, FormatQCOW2, FormatRaw))
	s.Abilities.validate(&bad)
	if s.Sha256 != "" {
		if raw, err := hex.DecodeString(s.Sha256); err != nil || len(raw) != 32 {
			bad.note(invalid("spec.sha256", "%q is no SHA-256", clip(s.Sha256)).WithHint("64 hex digits, as sha256sum prints"))
		}
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || len(s.URL) > 2048 || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			bad.note(invalid("spec.url", "%q is no URL that an image can come from", clip(s.URL)).WithHint("http:// or https://"))
		}
	}
	bad.note(defaultUser(s.DefaultUser))
	return bad.err()
}

// userForm is useradd(8)'s of names.
var userForm = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// defaultUser checks the name of a user in a guest; empty: unknown.
func defaultUser(name string) *Error {
	if name != "" && !userForm.MatchString(name) {
		return invalid("spec.defaultUser", "%q is no name of a user", clip(name)).WithHint("as debian: up to 32 of a-z, 0-9, _ and -")
	}
	return nil
}

// ChangeImage checks what may change once an image is there.
func ChangeImage(old, s ImageSpec) error {
	if old.Format != s.Format || old.Sha256 != s.Sha256 || old.URL != s.URL {
		return Errorf(CodeInvalid, "an image's bytes do not change").At("spec").WithHint("import another one")
	}
	return nil
}
