// Package accessreview lists who has access, with what a reviewer should check. It is a
// pure function of users, API keys and the time: it needs no state of its own, and the
// same objects give the same review.
package accessreview

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Query selects the entries of a page. Empty filters select all.
type Query struct {
	Now   time.Time
	Since time.Time // access that was last used before is a finding

	Search  string // part of the name; case is ignored
	Kind    api.Kind
	Role    api.Role
	Finding api.AccessFinding

	Limit    int
	Continue string // of the page before
}

// Review collects the entries of one page. It holds a few pages in memory at a time,
// however many users and keys are added. The methods must not be called concurrently.
type Review struct {
	query Query
	// groups are the grants that users have by their groups.
	groups map[api.UserID][]api.AccessGrant
	after  string
	total  int64
	kept   []keyed
}

// keyed is an entry and its position in the review.
type keyed struct {
	key   string
	entry api.AccessEntry
}

// New returns a review without entries. It refuses filters that select nothing, and an
// invalid token of a page before.
func New(q Query) (*Review, error) {
	switch {
	case q.Kind != "" && !slices.Contains(kinds, q.Kind):
		return nil, unknown("kind", q.Kind, kinds)
	case q.Role != "" && !slices.Contains(widest, q.Role):
		return nil, unknown("role", q.Role, widest)
	case q.Finding != "" && !slices.Contains(findings, q.Finding):
		return nil, unknown("finding", q.Finding, findings)
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Continue)
	if err != nil {
		return nil, api.Errorf(api.CodeInvalid, "is not a token from a previous page").At("continue")
	}
	q.Search = strings.ToLower(strings.TrimSpace(q.Search))
	return &Review{query: q, after: string(after)}, nil
}

func unknown[T ~string](field string, found T, want []T) error {
	return api.Errorf(api.CodeInvalid, "%.64q is not a valid %s", string(found), field).At(field).WithHint("want one of %v", want)
}

// AddGroup adds the grants of a group to the entries of its members, which must be added
// after it.
func (r *Review) AddGroup(g api.Group) {
	if r.groups == nil {
		r.groups = map[api.UserID][]api.AccessGrant{}
	}
	for _, m := range g.Spec.Members {
		for _, s := range g.Spec.Grants {
			if g.Gives(m, s) {
				one := grant(s.Role, s.Organization, s.Project)
				one.Group, one.GroupName = api.GroupID(g.Meta.ID), g.Meta.Name
				r.groups[m] = append(r.groups[m], one)
			}
		}
	}
}

// AddUser adds the entry of a user that is not disabled.
func (r *Review) AddUser(u api.User) {
	if !u.Spec.Disabled {
		r.add(ofUser(u, r.groups[api.UserID(u.Meta.ID)], r.query.Since))
	}
}

// AddKey adds the entry of an API key.
func (r *Review) AddKey(k api.APIKey) { r.add(ofKey(k, r.query.Since, r.query.Now)) }

// Page returns the page. Entries with findings come first, those of the widest roles
// before others.
func (r *Review) Page() api.AccessReview {
	kept := r.sorted()
	out := api.AccessReview{Items: make([]api.AccessEntry, 0, len(kept)), Total: r.total, AsOf: r.query.Now, UnusedSince: r.query.Since}
	if len(kept) > r.query.Limit {
		kept = kept[:r.query.Limit]
		out.Continue = base64.RawURLEncoding.EncodeToString([]byte(kept[len(kept)-1].key))
	}
	for _, k := range kept {
		out.Items = append(out.Items, k.entry)
	}
	return out
}

// add keeps an entry that the query selects, unless it belongs to a page before.
func (r *Review) add(e api.AccessEntry) {
	if !r.query.selects(e) {
		return
	}
	r.total++
	if key := keyOf(e); key > r.after {
		if r.kept = append(r.kept, keyed{key, e}); len(r.kept) >= 4*(r.query.Limit+1) {
			r.kept = r.sorted()
		}
	}
}

// sorted returns the first entries, one more than a page has.
func (r *Review) sorted() []keyed {
	slices.SortFunc(r.kept, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	return r.kept[:min(len(r.kept), r.query.Limit+1)]
}

func (q Query) selects(e api.AccessEntry) bool {
	found := q.Finding == "" || q.Finding == api.AnyFinding && len(e.Findings) > 0 || slices.Contains(e.Findings, q.Finding)
	return found && (q.Kind == "" || e.Kind == q.Kind) && strings.Contains(strings.ToLower(e.Name), q.Search) &&
		(q.Role == "" || slices.ContainsFunc(e.Grants, func(g api.AccessGrant) bool { return g.Role == q.Role }))
}

// keyOf returns the position of an entry: entries are in the order of their keys.
func keyOf(e api.AccessEntry) string {
	checked := "1"
	if len(e.Findings) > 0 {
		checked = "0"
	}
	return strings.Join([]string{checked, strconv.Itoa(rank(e.Grants)), string(e.Organization), string(e.Kind), e.Name, e.ID}, "\x00")
}

func ofUser(u api.User, groups []api.AccessGrant, since time.Time) api.AccessEntry {
	e := api.AccessEntry{Kind: api.KindUser, ID: u.Meta.ID, Name: u.Meta.Name, Organization: api.OrganizationID(u.Meta.Organization),
		Grants:       make([]api.AccessGrant, 0, len(u.Spec.Grants)),
		SecondFactor: u.Status.Totp || u.Status.Passkeys > 0, CreatedAt: u.Meta.CreatedAt, LastUsedAt: u.Status.LastLoginAt}
	for _, g := range u.Spec.Grants {
		e.Grants = append(e.Grants, grant(g.Role, g.Organization, g.Project))
	}
	e.Grants = append(e.Grants, groups...)
	// Without a password the second factor is the identity provider's.
	if u.Status.HasPassword && !e.SecondFactor {
		e.Findings = append(e.Findings, api.NoSecondFactor)
	}
	e.Findings = append(e.Findings, useOf(e, since)...)
	return e
}

func ofKey(k api.APIKey, since, now time.Time) api.AccessEntry {
	s := k.Spec
	e := api.AccessEntry{Kind: api.KindAPIKey, ID: k.Meta.ID, Name: k.Meta.Name, Organization: api.OrganizationID(k.Meta.Organization),
		Grants: []api.AccessGrant{grant(s.Role, k.Meta.Organization, k.Meta.Project)},
		Scopes: s.Scopes, Networks: s.Networks, CreatedAt: k.Meta.CreatedAt, LastUsedAt: k.Status.LastUsedAt, ExpiresAt: s.ExpiresAt}
	switch {
	case s.ExpiresAt == nil:
		e.Findings = append(e.Findings, api.NoExpiry)
	case !s.ExpiresAt.After(now):
		e.Findings = append(e.Findings, api.Expired)
	}
	if len(s.Scopes) == 0 && len(s.Networks) == 0 {
		e.Findings = append(e.Findings, api.Unrestricted)
	}
	e.Findings = append(e.Findings, useOf(e, since)...)
	return e
}

func grant(role api.Role, organization, project string) api.AccessGrant {
	return api.AccessGrant{Role: role, Organization: api.OrganizationID(organization), Project: api.ProjectID(project)}
}

// useOf returns the finding about an entry's last use, if there is one.
func useOf(e api.AccessEntry, since time.Time) []api.AccessFinding {
	switch {
	case e.LastUsedAt != nil && e.LastUsedAt.Before(since):
		return []api.AccessFinding{api.Unused}
	case e.LastUsedAt == nil && e.CreatedAt.Before(since):
		return []api.AccessFinding{api.NeverUsed}
	}
	return nil
}

// What the filters of a query can select.
var (
	kinds    = []api.Kind{api.KindUser, api.KindAPIKey}
	findings = []api.AccessFinding{api.AnyFinding, api.NoSecondFactor, api.NeverUsed, api.Unused, api.NoExpiry, api.Unrestricted, api.Expired}
)

// widest lists the roles by what they may do, the widest first.
var widest = []api.Role{api.RoleOperator, api.RoleReseller, api.RoleAdmin, api.RoleMember, api.RoleBilling, api.RoleViewer}

// rank returns the position of the widest role among grants; it is below 10.
func rank(grants []api.AccessGrant) int {
	best := len(widest)
	for _, g := range grants {
		if i := slices.Index(widest, g.Role); i >= 0 {
			best = min(best, i)
		}
	}
	return best
}
