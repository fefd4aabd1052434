package ui

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// doorPath is the prefix of the API for browsers: /portal/v1/… is /v1/… with the session's
// token in a cookie that scripts cannot read. See docs/decisions/0018.
const doorPath = "/portal/"

const cookieName = "basalt-session"

// begins contains the operations whose response has a session's token.
var begins = map[string]bool{"/v1/login": true, "/v1/login/link": true, "/v1/login/oidc/finish": true, "/v1/login/passkey/finish": true, "/v1/password": true, "/v1/sign-up/finish": true}

// door passes requests of the portal's own pages to the API.
type door struct{ api http.Handler }

func (d door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !fromPortal(r) {
		refuse(w)
		return
	}
	in := r.Clone(r.Context())
	in.URL.Path = "/" + strings.TrimPrefix(r.URL.Path, doorPath)
	if r.URL.RawPath != "" {
		in.URL.RawPath = "/" + strings.TrimPrefix(r.URL.RawPath, doorPath)
	}
	in.RequestURI = in.URL.RequestURI()
	in.Header.Del("Authorization")
	in.Header.Del("Cookie")
	if c, err := r.Cookie(cookieName); err == nil && c.Value != "" {
		in.Header.Set("Authorization", "Bearer "+c.Value)
	}
	switch {
	case r.Method == http.MethodPost && begins[in.URL.Path]:
		a := answer{header: http.Header{}, status: http.StatusOK}
		d.api.ServeHTTP(&a, in)
		a.keepToken(r)
		a.send(w)
	case r.Method == http.MethodPost && in.URL.Path == "/v1/logout":
		// The cookie is deleted whether the API ends the session now or has already done so.
		http.SetCookie(w, cookie(r, ""))
		d.api.ServeHTTP(w, in)
	default:
		d.api.ServeHTTP(w, in)
	}
}

// fromPortal reports whether the request comes from a page of this origin. Browsers report that
// themselves, and pages cannot forge it: forms, links, images and scripts of other sites are
// refused, and so are reads and websockets. Browsers that do not send Sec-Fetch-Site (none does
// on connections without TLS to other machines) must send Origin.
func fromPortal(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	o, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && o.Host != "" && o.Host == r.Host
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "/docs#error-forbidden", "title": "Forbidden", "status": http.StatusForbidden,
		"code": "forbidden", "detail": "this address is for the portal's own pages", "hint": "programs use /v1 with an API key"})
}

// cookie returns the cookie for a token; an empty token deletes it. The cookie ends with the
// browser session, and the session that it names ends after a week at the latest.
func cookie(r *http.Request, token string) *http.Cookie {
	c := &http.Cookie{Name: cookieName, Value: token, Path: doorPath, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
	if token == "" {
		c.MaxAge = -1
	}
	return c
}

// answer buffers a response until its token is removed. Only small responses are buffered.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// keepToken moves the token from the body to the cookie.
func (a *answer) keepToken(r *http.Request) {
	if a.status/100 != 2 {
		return
	}
	var session map[string]json.RawMessage
	var token string
	if json.Unmarshal(a.body.Bytes(), &session) != nil || json.Unmarshal(session["token"], &token) != nil || token == "" {
		return
	}
	delete(session, "token")
	rest, err := json.Marshal(session)
	if err != nil {
		return
	}
	a.body.Reset()
	a.body.Write(rest)
	a.header.Add("Set-Cookie", cookie(r, token).String())
}

func (a *answer) send(w http.ResponseWriter) {
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes())
}
