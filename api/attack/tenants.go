package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
)

// Every operation of the contract, including later ones, is called by everybody except
// the victim: each reading operation in every way to name the victim, and each
// operation on one of its objects.

// operation is an operation of the contract.
type operation struct{ id, method, path string }

func operations() ([]operation, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return nil, err
	}
	var all []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, operation{op.OperationID, method, path})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return cmp.Compare(a.id, b.id) })
	return all, nil
}

func (w *world) tenantTries() []try {
	all, err := operations()
	if err != nil {
		return []try{{"A4 the contract", "it can be read", func(context.Context) error { return err }}}
	}
	tries := []try{{"A4 the victim asks for its own", "found, so that the tries below can fail", w.seesItsOwn}}
	for _, op := range all {
		collection, below, one := strings.Cut(op.path, "/{id}")
		switch {
		case op.id == "Watch", op.id == "GetHealth":
		case !one && op.method == http.MethodGet:
			tries = append(tries, try{"A4 " + op.id + " as others", "nothing of the victim's", func(ctx context.Context) error { return w.readByOthers(ctx, op.path) }})
		case one && slices.ContainsFunc(w.things, func(o object) bool { return o.path == collection }):
			tries = append(tries, try{"A4 " + op.id + " of the victim's as others", "as if it were not there", func(ctx context.Context) error {
				return w.touchedByOthers(ctx, op.method, collection, below)
			}})
		}
	}
	return append(tries, try{"A4 Watch as others", "nothing of the victim's", w.watchedByOthers})
}

// marks returns texts that nobody except the victim may receive.
func (w *world) marks() []string {
	all := []string{w.canary}
	for _, o := range w.things {
		all = append(all, o.Meta.ID)
	}
	return all
}

// leak returns an error if a response contains data of the victim that the caller did
// not send itself.
func (w *world) leak(raw []byte, wrote string) error {
	for _, m := range w.marks() {
		if bytes.Contains(raw, []byte(m)) && !strings.Contains(wrote, m) {
			return fmt.Errorf("the answer has %s: %.300s", m, raw)
		}
	}
	return nil
}

// queries returns ways to request the victim's objects in a list. The canary may be
// repeated only in the error for a query that contains it.
func (w *world) queries() []string {
	period := "from=2026-01-01T00:00:00Z&to=2099-01-01T00:00:00Z&installation=x&oldest=true"
	return []string{"", period, "search=" + w.canary[:len(w.canary)-1], "organization=" + w.victim.Meta.ID + "&" + period,
		"organization=" + w.victim.Meta.Name + "&" + period, "project=" + w.web.Meta.ID + "&" + period, "name=" + w.canary,
		"organization=" + w.victim.Meta.ID + "&project=" + w.web.Meta.Name + "&" + period}
}

func (w *world) readByOthers(ctx context.Context, path string) error {
	return each(w.strangers, func(who caller) error {
		return each(w.queries(), func(query string) error {
			a, err := w.ask(ctx, who.token, http.MethodGet, path+"?"+query, nil)
			if err != nil {
				return err
			}
			wrote := query
			if a.ok() { // a search result must not contain it, even if the query does
				wrote = ""
			}
			if a.status >= http.StatusInternalServerError && a.Code != api.CodeUnavailable {
				return fmt.Errorf("%s %s?%s: %s", who.name, path, query, a)
			}
			if err := w.leak(a.raw, wrote); err != nil {
				return fmt.Errorf("%s asks %s?%s: %w", who.name, path, query, err)
			}
			return nil
		})
	})
}

// touchedByOthers applies an operation to the victim's objects, by ID and by name, and
// to a missing one: the responses may differ in the name only.
func (w *world) touchedByOthers(ctx context.Context, method, collection, below string) error {
	return each(w.things, func(o object) error {
		if o.path != collection {
			return nil
		}
		content, err := w.contentFor(ctx, method, o)
		if err != nil {
			return err
		}
		nobody := o.Meta.ID[:strings.IndexByte(o.Meta.ID, '-')] + "-000000000000"
		return each(w.strangers, func(who caller) error {
			return each([][2]string{{o.Meta.ID, nobody}, {o.Meta.Name, strings.Replace(o.Meta.Name, w.canary, "nobody", 1)}}, func(names [2]string) error {
				var said [2]string
				for i, name := range names {
					path := collection + "/" + url.PathEscape(name) + below
					scope := "?organization=" + w.victim.Meta.ID + "&project=" + w.web.Meta.ID
					if i%2 == 1 || names[0] == o.Meta.ID {
						scope = ""
					}
					a, err := w.ask(ctx, who.token, method, path+scope, content)
					if err != nil {
						return err
					}
					if a.ok() || a.status >= http.StatusInternalServerError {
						return fmt.Errorf("%s: %s %s: %s", who.name, method, path, a)
					}
					if err := w.leak(a.raw, path+scope); err != nil {
						return fmt.Errorf("%s: %s %s: %w", who.name, method, path, err)
					}
					said[i] = strings.ReplaceAll(a.String(), name, "NAME")
				}
				if names[0] == o.Meta.ID && said[0] != said[1] {
					return fmt.Errorf("%s: %s %s: %s for one that is there, %s for one that is not", who.name, method, collection, said[0], said[1])
				}
				return nil
			})
		})
	})
}

// contentFor returns a request body that an owner could send.
func (w *world) contentFor(ctx context.Context, method string, o object) (any, error) {
	switch method {
	case http.MethodPut:
		return fetch[map[string]any](ctx, w.wire, w.op, http.MethodGet, o.at(), nil)
	case http.MethodPost:
		return map[string]any{}, nil
	}
	return nil, nil
}

// seesItsOwn checks that the victim itself does receive the marks.
func (w *world) seesItsOwn(ctx context.Context) error {
	return each(w.things, func(o object) error {
		for _, path := range []string{o.path, o.path + "?search=" + w.canary, o.at()} {
			a, err := w.ask(ctx, w.owner, http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			if w.leak(a.raw, "") == nil {
				return fmt.Errorf("%s: %s", path, a)
			}
		}
		return nil
	})
}

func (w *world) watchedByOthers(ctx context.Context) error {
	return each(w.strangers, func(who caller) error {
		if who.token == "" || who.name == string(api.RoleBilling) {
			return w.refused(ctx, who.token, http.MethodGet, "/v1/watch", nil, api.CodeUnauthenticated, api.CodeForbidden)
		}
		// First the snapshot, then the changes.
		var wrong error
		last := int64(0)
		read := func(line []byte) bool {
			var e api.Event
			wrong = errors.Join(json.Unmarshal(line, &e), w.leak(line, ""))
			last = max(last, e.Revision)
			return wrong == nil && e.Type != api.EventSync
		}
		if err := w.watch(ctx, who.token, "since=0", read); err != nil || wrong != nil {
			return errors.Join(err, wrong)
		}
		return w.watchChanges(ctx, who, last)
	})
}

// watchChanges changes an object of the victim, then one of the watcher, and reads
// until the latter.
func (w *world) watchChanges(ctx context.Context, who caller, since int64) error {
	label := func(o object) error {
		return w.change(ctx, w.op, o, func(spec map[string]any) { spec["displayName"] = "seen " + word() })
	}
	own := w.foe
	if who.name == string(api.RoleReseller) {
		own = w.seller
	}
	if err := errors.Join(label(w.victim), label(w.web), label(own)); err != nil {
		return err
	}
	var wrong error
	err := w.watch(ctx, who.token, fmt.Sprint("since=", since), func(line []byte) bool {
		wrong = w.leak(line, "")
		return wrong == nil && !bytes.Contains(line, []byte(own.Meta.ID))
	})
	if wrong != nil {
		return fmt.Errorf("%s: %w", who.name, wrong)
	}
	return err
}
