// Package accessreview lists who has access, with what a reviewer should check. It is a
// pure function of users, API keys and the time: it needs no state of its own, and the
// same objects give the same review.
package accessreview

import (
	"cmp"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Finding is a reason to check an entry.
type Finding string

// The findings. None of them is an error: a review decides whether access is still right.
const (
	NoSecondFactor Finding = "no-second-factor" // a user who signs in with a password alone
	NeverUsed      Finding = "never-used"       // created before the period of the review, and not used since
	Unused         Finding = "unused"           // last used before the period of the review
	NoExpiry       Finding = "no-expiry"        // a key that does not expire
	Unrestricted   Finding = "unrestricted"     // a key with all permissions of its role, from any address
	Expired        Finding = "expired"          // a key that is of no use any more
)

// Entry is one user or API key that has access.
type Entry struct {
	Kind         api.Kind    `json:"kind"`
	ID           string      `json:"id"`
	Name         string      `json:"name"`
	Organization string      `json:"organization,omitempty"`
	Grants       []api.Grant `json:"grants"` // of a key: one
	Scopes       []string    `json:"scopes,omitempty"`
	Networks     []string    `json:"networks,omitempty"`
	SecondFactor bool        `json:"secondFactor,omitempty"` // one-time codes or a passkey
	CreatedAt    time.Time   `json:"createdAt"`
	LastUsedAt   *time.Time  `json:"lastUsedAt,omitempty"` // last sign-in, or last use of a key to the hour
	ExpiresAt    *time.Time  `json:"expiresAt,omitempty"`
	Findings     []Finding   `json:"findings,omitempty"`
}

// Of returns an entry for each API key, and for each user that is not disabled. Access
// that was not used since the given time is a finding. Entries with findings come first,
// those of the widest roles before others.
func Of(users []api.User, keys []api.APIKey, since, now time.Time) []Entry {
	entries := make([]Entry, 0, len(users)+len(keys))
	for _, u := range users {
		if !u.Spec.Disabled {
			entries = append(entries, ofUser(u, since))
		}
	}
	for _, k := range keys {
		entries = append(entries, ofKey(k, since, now))
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(
			-cmp.Compare(min(len(a.Findings), 1), min(len(b.Findings), 1)),
			cmp.Compare(rank(a.Grants), rank(b.Grants)),
			cmp.Compare(a.Organization, b.Organization),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return entries
}

func ofUser(u api.User, since time.Time) Entry {
	e := Entry{Kind: api.KindUser, ID: u.Meta.ID, Name: u.Meta.Name, Organization: u.Meta.Organization, Grants: u.Spec.Grants,
		SecondFactor: u.Status.Totp || u.Status.Passkeys > 0, CreatedAt: u.Meta.CreatedAt, LastUsedAt: u.Status.LastLoginAt}
	// Without a password the second factor is the identity provider's.
	if u.Status.HasPassword && !e.SecondFactor {
		e.Findings = append(e.Findings, NoSecondFactor)
	}
	e.Findings = append(e.Findings, useOf(e, since)...)
	return e
}

func ofKey(k api.APIKey, since, now time.Time) Entry {
	s := k.Spec
	e := Entry{Kind: api.KindAPIKey, ID: k.Meta.ID, Name: k.Meta.Name, Organization: k.Meta.Organization,
		Grants: []api.Grant{{Role: s.Role, Organization: k.Meta.Organization, Project: k.Meta.Project}},
		Scopes: s.Scopes, Networks: s.Networks, CreatedAt: k.Meta.CreatedAt, LastUsedAt: k.Status.LastUsedAt, ExpiresAt: s.ExpiresAt}
	switch {
	case s.ExpiresAt == nil:
		e.Findings = append(e.Findings, NoExpiry)
	case !s.ExpiresAt.After(now):
		e.Findings = append(e.Findings, Expired)
	}
	if len(s.Scopes) == 0 && len(s.Networks) == 0 {
		e.Findings = append(e.Findings, Unrestricted)
	}
	e.Findings = append(e.Findings, useOf(e, since)...)
	return e
}

// useOf returns the finding about an entry's last use, if there is one.
func useOf(e Entry, since time.Time) []Finding {
	switch {
	case e.LastUsedAt != nil && e.LastUsedAt.Before(since):
		return []Finding{Unused}
	case e.LastUsedAt == nil && e.CreatedAt.Before(since):
		return []Finding{NeverUsed}
	}
	return nil
}

// widest lists the roles by what they may do, the widest first.
var widest = []api.Role{api.RoleOperator, api.RoleReseller, api.RoleAdmin, api.RoleMember, api.RoleBilling, api.RoleViewer}

// rank returns the position of the widest role among grants.
func rank(grants []api.Grant) int {
	best := len(widest)
	for _, g := range grants {
		if i := slices.Index(widest, g.Role); i >= 0 {
			best = min(best, i)
		}
	}
	return best
}
