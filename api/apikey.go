package api

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ValidateAPIKey checks a spec, and that meta's organization and project are the scope
// that its role needs.
func ValidateAPIKey(m Meta, s APIKeySpec, now time.Time) error {
	var bad faults
	bad.note(validateRole(s.Role, m.Organization, m.Project, "spec.role", "meta.organization", "meta.project"))
	if s.ExpiresAt != nil && !s.ExpiresAt.After(now) {
		bad.note(invalid("spec.expiresAt", "%s is in the past", s.ExpiresAt.UTC().Format(time.RFC3339)))
	}
	for i, scope := range s.Scopes {
		if !slices.Contains(Scopes(), scope) {
			bad.note(invalid(fmt.Sprintf("spec.scopes[%d]", i), "unknown scope %q", clip(scope)).WithHint("%s", strings.Join(Scopes(), ", ")))
		}
	}
	for i, n := range s.Networks {
		if p, err := netip.ParsePrefix(n); err != nil || p != p.Masked() {
			bad.note(invalid(fmt.Sprintf("spec.networks[%d]", i), "%q is not a valid network", clip(n)).WithHint("e.g. 192.0.2.0/24, 192.0.2.7/32 or 2001:db8::/32"))
		}
	}
	if most := 64; len(s.Scopes) > most || len(s.Networks) > most {
		bad.note(invalid("spec", "must have at most %d scopes and networks", most))
		return bad.err()
	}
	return bad.err()
}

// scopeGroups are the areas that scopes cover; writes is false for those that are
// read-only.
var scopeGroups = []struct {
	name   string
	writes bool
}{
	{"alerts", false}, {"api-keys", true}, {"audit", false}, {"billing", true}, {"gpu-pools", true}, {"images", true}, {"instances", true}, {"networks", true},
	{"nodes", true}, {"organizations", true}, {"projects", true}, {"scim", true}, {"services", true}, {"storage", true}, {"usage", false}, {"users", false}, {"volumes", true}, {"webhooks", true},
}

// Scopes returns the scopes that an API key may have.
func Scopes() []string {
	var out []string
	for _, g := range scopeGroups {
		out = append(out, g.name+":read")
		if g.writes {
			out = append(out, g.name+":write")
		}
	}
	return out
}

// HasScope reports whether the scopes of a key include scope. An empty list includes
// all scopes, and a write scope includes the read scope of its group.
func HasScope(scopes []string, scope string) bool {
	group, read := strings.CutSuffix(scope, ":read")
	return len(scopes) == 0 || slices.Contains(scopes, scope) || read && slices.Contains(scopes, group+":write")
}
