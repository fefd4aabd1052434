package auth

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/oidc"
)

// The reasons why sign-ins with an identity provider were refused are kept in the memory of
// the node that refused them, and never written to the store: anybody can send a response to
// the address of a provider. Refusals that only somebody with an account at the provider can
// cause have room of their own, so that strangers cannot displace them. Equal ones are counted
// in one entry.
const (
	refusalLife  = 24 * time.Hour
	maxRefusals  = 10   // of a provider, confirmed and not each
	maxRefusedOf = 1024 // providers; beyond it, those whose last refusal is the oldest are dropped
	maxReason    = 400  // bytes
)

// refusals are the refused sign-ins of all providers on this node.
type refusals struct {
	mu sync.Mutex // guards of
	of map[string][]api.RefusedSignIn
}

func newRefusals() *refusals { return &refusals{of: map[string][]api.RefusedSignIn{}} }

// add adds a refusal of a provider.
func (r *refusals) add(provider string, x api.RefusedSignIn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.of[provider]; !known && len(r.of) >= maxRefusedOf {
		r.drop()
	}
	r.of[provider] = MergeRefusals(x.At, r.of[provider], []api.RefusedSignIn{x})
}

// drop removes the provider whose last refusal is the oldest.
func (r *refusals) drop() {
	oldest := ""
	for p, all := range r.of {
		if oldest == "" || all[0].At.Before(r.of[oldest][0].At) {
			oldest = p
		}
	}
	delete(r.of, oldest)
}

// recent returns the refusals of a provider, the newest first.
func (r *refusals) recent(provider string, now time.Time) []api.RefusedSignIn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return MergeRefusals(now, r.of[provider])
}

// MergeRefusals returns the refusals of one provider in several lists, the newest first: equal
// ones are counted together, and those beyond the limits of time and number are omitted.
func MergeRefusals(now time.Time, lists ...[]api.RefusedSignIn) []api.RefusedSignIn {
	type same struct {
		reason, email string
		confirmed     bool
	}
	found := map[same]api.RefusedSignIn{}
	for _, x := range slices.Concat(lists...) {
		if now.Sub(x.At) >= refusalLife {
			continue
		}
		k := same{x.Reason, x.Email, x.Confirmed}
		was, ok := found[k]
		if ok && was.At.After(x.At) {
			x.At = was.At
		}
		x.Count += was.Count
		found[k] = x
	}
	out := make([]api.RefusedSignIn, 0, len(found))
	for _, x := range found {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b api.RefusedSignIn) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Email, b.Email))
	})
	n := map[bool]int{}
	return slices.DeleteFunc(out, func(x api.RefusedSignIn) bool {
		n[x.Confirmed]++
		return n[x.Confirmed] > maxRefusals
	})
}

// refusedBy keeps why a sign-in with a provider was refused. The email is that of a person
// whom the provider has confirmed; empty: it has confirmed nobody.
func (a *Authenticator) refusedBy(ctx context.Context, p api.IdentityProvider, email string, confirmed bool, why error) {
	a.opts.Log.Warn("sign-in with identity provider refused", "provider", p.Meta.Name, "organization", p.Meta.Organization, "address", addressOf(Request(ctx)), "error", clipped(why))
	a.refusals.add(p.Meta.ID, api.RefusedSignIn{At: a.opts.Now().UTC(), Reason: reasonOf(why), Email: clip(email), Confirmed: confirmed, Count: 1})
}

// refusedPerson keeps why a person whom a provider has confirmed was refused, unless the error
// is internal, and returns it.
func (a *Authenticator) refusedPerson(ctx context.Context, p api.IdentityProvider, who person, err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		a.refusedBy(ctx, p, who.Email, true, e)
	}
	return err
}

// reasonOf returns the text of an error, which may contain what others have sent: on one line
// of printable characters, and limited.
func reasonOf(err error) string {
	text := err.Error()
	var e *api.Error
	var f *oidc.Failure
	if errors.As(err, &e) {
		text = e.Message
	} else if errors.As(err, &f) {
		text = f.Shown
	}
	text = strings.ToValidUTF8(text[:min(len(text), 4*maxReason)], "")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// RefusedSignIns returns the sign-ins with a provider that this node has refused lately, the
// newest first.
func (a *Authenticator) RefusedSignIns(provider string) []api.RefusedSignIn {
	return a.refusals.recent(provider, a.opts.Now())
}
