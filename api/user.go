package api

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxGrants limits the grants of a user or an identity provider.
const MaxGrants = 64

const (
	maxLoginBytes = 100 // with its prefix it is used as a claim
	leastPassword = 10
	mostPassword  = 256
)

// loginPattern matches common e-mail addresses. Only sending mail shows whether an
// address is deliverable.
var loginPattern = regexp.MustCompile(`^[a-z0-9!#$%&'*+/=?^_{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_{|}~-]+)*@[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// Login returns the normalized form in which an e-mail address is stored and compared.
func Login(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// ValidateLogin checks a user's name, which is an e-mail address.
func ValidateLogin(name string) error {
	if len(name) > maxLoginBytes || !loginPattern.MatchString(name) {
		return invalid("meta.name", "%q is not a valid e-mail address", clip(name)).WithHint("e.g. ann@example.com, in lower case, at most %d bytes", maxLoginBytes)
	}
	return nil
}

// LoginClaim returns the claim that reserves an e-mail address for one user in the
// whole cluster: a user who has proved to own it, or one created by an operator. An
// unproved address is unique within its organization only (docs/decisions/0029).
func LoginClaim(name string) []string { return []string{"user/" + name} }

// ValidateUser checks a spec whose grants contain IDs.
func ValidateUser(s UserSpec) error {
	var bad faults
	bad.note(text("spec.displayName", s.DisplayName))
	if s.Language != "" {
		bad.note(ValidateMailLanguage("spec.language", s.Language))
	}
	if len(s.Grants) > MaxGrants {
		bad.note(invalid("spec.grants", "has %d grants, want at most %d", len(s.Grants), MaxGrants))
		return bad.err()
	}
	for i, g := range s.Grants {
		at := fmt.Sprintf("spec.grants[%d].", i)
		bad.note(validateRole(g.Role, g.Organization, g.Project, at+"role", at+"organization", at+"project"))
		if slices.Contains(s.Grants[:i], g) {
			bad.note(invalid(at+"role", "must be listed only once"))
		}
	}
	return bad.err()
}

// ValidateUserScim checks what a directory says about a user.
func ValidateUserScim(s UserScim) error {
	var bad faults
	for field, value := range map[string]string{"externalId": s.ExternalID, "name.givenName": s.GivenName, "name.familyName": s.FamilyName} {
		if bad.note(text(field, value)); utf8.RuneCountInString(value) > 256 {
			bad.note(invalid(field, "must have at most 256 characters"))
		}
	}
	return bad.err()
}

// ValidatePassword checks a new password.
func ValidatePassword(field, password, login string) error {
	switch {
	case len(password) < leastPassword || len(password) > mostPassword:
		return invalid(field, "must have %d to %d bytes", leastPassword, mostPassword)
	case strings.EqualFold(password, login):
		return invalid(field, "must not be the e-mail address")
	}
	return nil
}
