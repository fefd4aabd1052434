package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/scim"
)

// scimPath is the base of the SCIM endpoints (RFC 7644), which openapi.yaml does not
// contain: their messages are those of the RFC.
const scimPath = "/scim/v2"

// scimTries is how often a change is applied again after another request has changed the
// same user or group. Directories send the members of a group one by one, and at the same
// time.
const scimTries = 8

// scimAnswer is the status and the body of a response; a nil body means no content.
type scimAnswer struct {
	status int
	body   any
}

// scimRequest is a request of a directory.
type scimRequest struct {
	*handlers
	org  string // whose users and groups it manages
	base string // URL of scimPath
	id   string // in the path
	http *http.Request
	body []byte
	want scim.Selection
}

type scimHandler func(r scimRequest, ctx context.Context) (scimAnswer, error)

// registerScim registers the SCIM endpoints.
func (s *Server) registerScim() {
	add := func(op, method, path string, f scimHandler) {
		s.echo.Add(method, scimPath+path, s.scimHandler(f), s.guard(op))
	}
	for path, f := range map[string]scimHandler{"/ServiceProviderConfig": scimRequest.config, "/ResourceTypes": scimRequest.resourceTypes, "/ResourceTypes/:id": scimRequest.resourceTypes,
		"/Schemas": scimRequest.schemas, "/Schemas/:id": scimRequest.schemas} {
		add("GetScimConfig", http.MethodGet, path, f)
	}
	add("ListScimUsers", http.MethodGet, "/Users", scimRequest.listUsers)
	add("CreateScimUser", http.MethodPost, "/Users", scimRequest.createUser)
	add("GetScimUser", http.MethodGet, "/Users/:id", scimRequest.getUser)
	add("ReplaceScimUser", http.MethodPut, "/Users/:id", scimRequest.replaceUser)
	add("PatchScimUser", http.MethodPatch, "/Users/:id", scimRequest.patchUser)
	add("DeleteScimUser", http.MethodDelete, "/Users/:id", scimRequest.deleteUser)
	add("ListScimGroups", http.MethodGet, "/Groups", scimRequest.listGroups)
	add("CreateScimGroup", http.MethodPost, "/Groups", scimRequest.createGroup)
	add("GetScimGroup", http.MethodGet, "/Groups/:id", scimRequest.getGroup)
	add("ReplaceScimGroup", http.MethodPut, "/Groups/:id", scimRequest.replaceGroup)
	add("PatchScimGroup", http.MethodPatch, "/Groups/:id", scimRequest.patchGroup)
	add("DeleteScimGroup", http.MethodDelete, "/Groups/:id", scimRequest.deleteGroup)
}

func (s *Server) scimHandler(f scimHandler) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, err := s.scimRequest(c)
		if err != nil {
			return err
		}
		a, err := f(r, c.Request().Context())
		if err != nil {
			return err
		}
		return writeScim(c.Response(), a)
	}
}

// scimRequest reads a request. Only an API key of an organization may send one, so that no
// page of a browser can, and it is clear whose users it is about.
func (s *Server) scimRequest(c echo.Context) (scimRequest, error) {
	in := c.Request()
	me, r := who(in.Context()), scimRequest{handlers: &handlers{s}, id: c.Param("id"), http: in}
	if !me.IsKey() || me.Org == "" {
		return r, api.Errorf(api.CodeForbidden, "SCIM requires an API key of an organization").WithHint("create one with role admin and scope scim:write")
	}
	scheme := "http"
	if in.TLS != nil {
		scheme = "https"
	}
	q := in.URL.Query()
	r.org, r.base, r.want = me.Org, scheme+"://"+in.Host+scimPath, scim.NewSelection(q.Get("attributes"), q.Get("excludedAttributes"))
	if in.Method == http.MethodGet || in.Method == http.MethodDelete {
		return r, nil
	}
	if err := mediaType(in, scim.MediaType, jsonType); err != nil {
		return r, err
	}
	var err error
	if r.body, err = io.ReadAll(in.Body); err != nil { // limited by guard
		return r, err
	}
	if depth(r.body) > maxDepth {
		return r, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidSyntax, Detail: "the body is nested too deeply"}
	}
	return r, nil
}

func writeScim(w http.ResponseWriter, a scimAnswer) error {
	if a.body == nil {
		w.WriteHeader(a.status)
		return nil
	}
	raw, err := json.Marshal(a.body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", scim.MediaType)
	if m, ok := a.body.(map[string]any); ok && a.status == http.StatusCreated {
		if meta, ok := m["meta"].(map[string]any); ok {
			w.Header().Set("Location", meta["location"].(string))
		}
	}
	w.WriteHeader(a.status)
	_, err = w.Write(append(raw, '\n'))
	return err
}

// sendScimError writes an error as SCIM defines it.
func (s *Server) sendScimError(err error, c echo.Context) {
	var e *scim.Error
	if !errors.As(err, &e) {
		out := s.outward(err, c.Request().Method, c.Path(), readerOf(c.Request().Context()))
		e = &scim.Error{Status: out.Code.HTTPStatus(), Detail: strings.TrimPrefix(out.Field+": "+out.Message, ": ")}
		if out.Hint != "" {
			e.Detail += " (" + out.Hint + ")"
		}
		switch out.Code {
		case api.CodeUnauthenticated:
			c.Response().Header().Set("WWW-Authenticate", "Bearer")
		case api.CodeExists:
			e.Type = scim.Uniqueness
		case api.CodeInvalid:
			e.Type = scim.InvalidValue
		}
	}
	if sendErr := writeScim(c.Response(), scimAnswer{e.Status, e}); sendErr != nil {
		s.opts.Log.Debug("write error response failed", "route", c.Path(), "error", sendErr)
	}
}

// scimTaken returns the error for a resource whose name is in use.
func scimTaken(format string, args ...any) error {
	return api.Errorf(api.CodeExists, format, args...)
}

// again calls f again after a conflict with another change.
func (r scimRequest) again(ctx context.Context, f func() (scimAnswer, error)) (scimAnswer, error) {
	for try := 1; ; try++ {
		a, err := f()
		if err == nil || api.CodeOf(err) != api.CodeConflict || try == scimTries || ctx.Err() != nil {
			return a, err
		}
	}
}

// page returns the range of a list that a request asks for: the first resource, counted
// from 1, and how many.
func (r scimRequest) page() (start, count int, err error) {
	start, count = 1, scim.MaxPage
	for name, into := range map[string]*int{"startIndex": &start, "count": &count} {
		text := r.http.URL.Query().Get(name)
		if text == "" {
			continue
		}
		if *into, err = strconv.Atoi(text); err != nil {
			return 0, 0, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidValue, Detail: name + " must be a number"}
		}
	}
	return max(start, 1), min(max(count, 0), scim.MaxPage), nil
}

// list returns a page of the resources that f converts; f returns nil for an object that
// is not selected.
func (r scimRequest) list(ctx context.Context, q api.ListQuery, f func(api.Object) (map[string]any, error)) (scimAnswer, error) {
	start, count, err := r.page()
	if err != nil {
		return scimAnswer{}, err
	}
	var found []map[string]any
	total := 0
	q.Organization = r.org
	err = api.Each(ctx, r.opts.Store, q, func(o api.Object) error {
		m, err := f(o)
		if err != nil || m == nil {
			return err
		}
		if total++; total >= start && len(found) < count {
			found = append(found, m)
		}
		return nil
	})
	return scimAnswer{http.StatusOK, scim.List(found, total, start)}, err
}

func (r scimRequest) config(context.Context) (scimAnswer, error) {
	return scimAnswer{http.StatusOK, scim.Config(r.base)}, nil
}

func (r scimRequest) resourceTypes(context.Context) (scimAnswer, error) {
	return r.described(scim.ResourceTypes(r.base))
}

func (r scimRequest) schemas(context.Context) (scimAnswer, error) {
	return r.described(scim.Schemas(r.base))
}

// described returns all descriptions, or the one with the ID in the path.
func (r scimRequest) described(all []map[string]any) (scimAnswer, error) {
	if r.id == "" {
		return scimAnswer{http.StatusOK, scim.List(all, len(all), 1)}, nil
	}
	for _, d := range all {
		if d["id"] == r.id {
			return scimAnswer{http.StatusOK, d}, nil
		}
	}
	return scimAnswer{}, api.Errorf(api.CodeNotFound, "%.128q does not exist", r.id)
}
