package appgateway

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

//go:embed page.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is a page of the gateway itself.
type page struct {
	Title, Text string
	Enter       bool // exchange the pass in the URL for a visit
	Reload      int  // seconds; 0 for never
	Nonce       string
}

// write writes the page with headers that forbid framing it and loading anything
// from it.
func (p page) write(w http.ResponseWriter, status int) {
	p.Nonce = rand.Text()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; script-src 'nonce-"+p.Nonce+"'; style-src 'nonce-"+p.Nonce+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p) // fails only if the client has disconnected
}

func writeEntrance(w http.ResponseWriter) {
	page{Title: "Opening the app", Text: "The link is being checked.", Enter: true}.write(w, http.StatusOK)
}

// refuse responds with the reason why a request is not served: to a browser as a
// page, otherwise as text.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, p := refusal(err)
	if status == http.StatusInternalServerError {
		g.o.Log.Warn("app gateway: request failed", "host", r.Host, "error", err)
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		p.write(w, status)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, p.Text, status)
}

// refusal returns the status and page for an error. The page for an internal error
// contains no details.
func refusal(err error) (int, page) {
	var e *api.Error
	if !errors.As(err, &e) {
		e = api.Errorf(api.CodeInternal, "")
	}
	text := e.Message
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	switch e.Code {
	case api.CodeUnauthenticated:
		return http.StatusUnauthorized, page{Title: "Open it again", Text: "Your visit has ended. Open the app again from the portal, or with: basalt instance open NAME. Programs send an API key: Authorization: Bearer bslt_…"}
	case api.CodeForbidden:
		return http.StatusForbidden, page{Title: "Not allowed", Text: text}
	case api.CodeNotFound:
		return http.StatusNotFound, page{Title: "Not found", Text: "There is no such instance, or it is not yours."}
	case api.CodeState:
		return http.StatusConflict, page{Title: "Not running", Text: text, Reload: 10}
	case api.CodeQuota, api.CodeRateLimited:
		return http.StatusTooManyRequests, page{Title: "Too many requests", Text: text}
	case api.CodeUnavailable:
		return http.StatusBadGateway, page{Title: "The app does not answer yet", Text: text, Reload: 5}
	}
	return http.StatusInternalServerError, page{Title: "Something went wrong", Text: "Try again later."}
}
