package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// object is the part of a created object that the attacks use.
type object struct {
	Kind   string
	Meta   api.Meta
	Spec   json.RawMessage
	Status json.RawMessage
	Secret string
	Link   *api.PasswordLink
	path   string // of its kind
}

func (o object) at() string { return o.path + "/" + o.Meta.ID }

// caller is a name and a key.
type caller struct{ name, token string }

// world is the attacked and the attacking organizations.
type world struct {
	*wire
	o   options
	op  string // the operator's key
	tag string // in the names of everything that is created
	// canary is in the names of all of the victim's objects: in a response to anybody
	// else it is a leak.
	canary string

	victim, foe   object            // organizations
	web, den      object            // a project of each
	seller        object            // a reseller who cooperates with the attacker
	owner         string            // the key of the victim's admin
	admin, member string            // the attacker's keys
	strangers     []caller          // all callers except the victim
	things        []object          // the victim's objects
	secrets       map[string]string // secrets given or shown once, by their owner
	hostile       *hostile
	made          []string // paths of the objects to remove
}

func newWorld(ctx context.Context, o options) (*world, error) {
	l, err := newWire(o)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	w := &world{wire: l, o: o, op: strings.TrimSpace(string(raw)), tag: "attack-" + word(), canary: "canary" + word(), secrets: map[string]string{}}
	me, err := fetch[api.Identity](ctx, w.wire, w.op, http.MethodGet, "/v1/whoami", nil)
	if err != nil {
		return nil, err
	}
	if me.Role != api.RoleOperator {
		return nil, fmt.Errorf("--key-file: the key is of role %s, want %s", me.Role, api.RoleOperator)
	}
	if w.hostile, err = newHostile(o.own); err != nil {
		return nil, err
	}
	return w, nil
}

// word returns a random word.
func word() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return hex.EncodeToString(b[:])
}

// body is the request body for an object.
type body struct {
	Meta api.Meta `json:"meta"`
	Spec any      `json:"spec,omitempty"`
}

// make creates an object, which is removed at the end.
func (w *world) make(ctx context.Context, token, path, name string, m api.Meta, spec any) (object, error) {
	m.Name = name
	o, err := fetch[object](ctx, w.wire, token, http.MethodPost, path, body{m, spec})
	o.path = path
	if err == nil {
		w.keep(o)
	}
	return o, err
}

// taken returns the object in the response to its creation, which is removed at the
// end.
func (w *world) taken(a answer, path string) (o object, err error) {
	if !a.ok() {
		return o, fmt.Errorf("POST %s: %s", path, a)
	}
	if err := json.Unmarshal(a.raw, &o); err != nil {
		return o, err
	}
	o.path = path
	w.keep(o)
	return o, nil
}

// keep registers an object for removal at the end.
func (w *world) keep(o object) {
	w.made = append(w.made, o.at())
	if o.Secret != "" {
		w.secrets[o.Kind+" "+o.Meta.Name] = o.Secret
	}
	if o.Link != nil {
		w.secrets["link of "+o.Meta.Name] = o.Link.Token
	}
}

// key creates a key of a role and returns its secret.
func (w *world) key(ctx context.Context, name string, role api.Role, m api.Meta) (string, error) {
	o, err := w.make(ctx, w.op, "/v1/api-keys", name, m, api.APIKeySpec{Role: role})
	return o.Secret, err
}

// user creates a user with a password, unverified unless an operator creates it.
func (w *world) user(ctx context.Context, token, email, password string, m api.Meta, grants ...api.Grant) (object, error) {
	u, err := w.make(ctx, token, "/v1/users", email, m, api.UserSpec{Grants: grants})
	if err != nil || u.Link == nil {
		return u, errors.Join(err, errors.New("the answer has no link"))
	}
	_, err = fetch[api.PasswordSet](ctx, w.wire, "", http.MethodPost, "/v1/password/link", api.PasswordToken{Token: u.Link.Token, Password: password})
	return u, err
}

// settle creates both sides.
func (w *world) settle(ctx context.Context) error {
	steps := []func(context.Context) error{w.settleSides, w.settleKeys, w.settleVictim}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) settleSides(ctx context.Context) (err error) {
	for _, m := range []struct {
		into       *object
		path, name string
		meta       func() api.Meta
		spec       any
	}{
		{&w.victim, "/v1/organizations", w.canary, func() api.Meta { return api.Meta{} }, api.OrganizationSpec{}},
		{&w.foe, "/v1/organizations", w.tag + "-foe", func() api.Meta { return api.Meta{} }, api.OrganizationSpec{}},
		{&w.seller, "/v1/organizations", w.tag + "-seller", func() api.Meta { return api.Meta{} }, api.OrganizationSpec{}},
		{&w.web, "/v1/projects", w.canary + "-web", func() api.Meta { return api.Meta{Organization: w.victim.Meta.ID} }, api.ProjectSpec{}},
		{&w.den, "/v1/projects", w.tag + "-den", func() api.Meta { return api.Meta{Organization: w.foe.Meta.ID} }, api.ProjectSpec{}},
	} {
		if *m.into, err = w.make(ctx, w.op, m.path, m.name, m.meta(), m.spec); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) settleKeys(ctx context.Context) (err error) {
	foe, den := api.Meta{Organization: w.foe.Meta.ID}, api.Meta{Organization: w.foe.Meta.ID, Project: w.den.Meta.ID}
	if w.owner, err = w.key(ctx, w.canary+"-admin", api.RoleAdmin, api.Meta{Organization: w.victim.Meta.ID}); err != nil {
		return err
	}
	for _, k := range []struct {
		role api.Role
		meta api.Meta
	}{{api.RoleAdmin, foe}, {api.RoleMember, den}, {api.RoleViewer, den}, {api.RoleBilling, foe}, {api.RoleReseller, api.Meta{Organization: w.seller.Meta.ID}}} {
		token, err := w.key(ctx, fmt.Sprintf("%s-%s", w.tag, k.role), k.role, k.meta)
		if err != nil {
			return err
		}
		w.strangers = append(w.strangers, caller{string(k.role), token})
	}
	w.admin, w.member = w.strangers[0].token, w.strangers[1].token
	w.strangers = append(w.strangers, caller{name: "nobody"})
	return nil
}

// victimThings returns the victim's objects, one of each kind that can be created here and
// whose name is not public, as that of an identity provider is.
func (w *world) victimThings() []struct {
	path string
	meta api.Meta
	spec any
} {
	org, web := api.Meta{Organization: w.victim.Meta.ID}, api.Meta{Organization: w.victim.Meta.ID, Project: w.web.Meta.ID}
	return []struct {
		path string
		meta api.Meta
		spec any
	}{
		{"/v1/images", web, api.ImageSpec{Format: api.FormatRaw}},
		{"/v1/networks", web, api.NetworkSpec{Cidr4: "10.77.0.0/24"}},
		{"/v1/security-groups", web, api.SecurityGroupSpec{}},
		{"/v1/load-balancers", web, map[string]any{"network": w.canary, "protocol": "tcp", "port": 80}},
		{"/v1/volumes", web, api.VolumeSpec{SizeBytes: 1 << 20}},
		{"/v1/snapshots", web, map[string]any{"volume": w.canary}},
		{"/v1/groups", org, api.GroupSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: w.victim.Meta.ID}}}},
		{"/v1/budgets", org, map[string]any{"amountMicros": 1_000_000}},
		{"/v1/webhooks", org, api.WebhookSpec{URL: "https://" + w.canary + ".example/", Paused: true}},
		{"/v1/price-books", api.Meta{}, api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{}}},
	}
}

func (w *world) settleVictim(ctx context.Context) error {
	w.things = []object{w.victim, w.web}
	for _, t := range w.victimThings() {
		token := w.owner
		if t.path == "/v1/price-books" {
			token = w.op
		}
		a, err := w.ask(ctx, token, http.MethodPost, t.path, body{withName(t.meta, w.canary), t.spec})
		if err != nil {
			return err
		}
		if a.Code == api.CodeUnavailable || a.Code == api.CodeState { // networking is not available
			continue
		}
		o, err := w.taken(a, t.path)
		if err != nil {
			return err
		}
		w.things = append(w.things, o)
	}
	u, err := w.user(ctx, w.owner, w.canary+"@example.com", victimPassword, api.Meta{Organization: w.victim.Meta.ID},
		api.Grant{Role: api.RoleAdmin, Organization: w.victim.Meta.ID})
	if err != nil {
		return err
	}
	w.secrets["password"] = victimPassword
	w.things = append(w.things, u)
	return w.settlePrices(ctx)
}

// settlePrices gives the victim its own price book, and adds its key to the marks.
func (w *world) settlePrices(ctx context.Context) error {
	keys, err := fetch[api.APIKeyList](ctx, w.wire, w.owner, http.MethodGet, "/v1/api-keys", nil)
	if err != nil {
		return err
	}
	for _, k := range keys.Items {
		w.things = append(w.things, object{Kind: "APIKey", Meta: k.Meta, path: "/v1/api-keys"})
	}
	return w.change(ctx, w.op, w.victim, func(spec map[string]any) { spec["priceBook"] = w.canary })
}

const victimPassword = "an unlikely Horse of 1871"

func withName(m api.Meta, name string) api.Meta {
	m.Name = name
	return m
}

// change reads an object, changes its spec, and writes it.
func (w *world) change(ctx context.Context, token string, o object, f func(spec map[string]any)) error {
	now, err := fetch[map[string]any](ctx, w.wire, w.op, http.MethodGet, o.at(), nil)
	if err != nil {
		return err
	}
	spec, _ := now["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	f(spec)
	_, err = fetch[object](ctx, w.wire, token, http.MethodPut, o.at(), map[string]any{"meta": now["meta"], "spec": spec})
	return err
}

// stays excludes objects from the removal at the end.
func (w *world) stays(all ...object) {
	for _, o := range all {
		w.made = slices.DeleteFunc(w.made, func(path string) bool { return path == o.at() })
	}
}

// tidy removes everything that was created, in reverse order. Objects that are still in
// use are retried.
func (w *world) tidy(ctx context.Context) error {
	w.hostile.close()
	left, said := slices.Clone(w.made), answer{}
	slices.Reverse(left)
	err := within(ctx, tidyTime, "remove what was made", func() (bool, error) {
		var wrong error
		left = slices.DeleteFunc(left, func(path string) bool {
			a, err := w.ask(ctx, w.op, http.MethodDelete, path, nil)
			gone := err == nil && (a.ok() || a.Code == api.CodeNotFound)
			if wrong = errors.Join(wrong, err); !gone {
				said = a
			}
			return gone
		})
		return len(left) == 0, wrong
	})
	if err != nil {
		err = fmt.Errorf("%w; left are %v: %s", err, left, said)
	}
	return err
}
