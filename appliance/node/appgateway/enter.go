package appgateway

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// Reserved is the path below which the gateway itself answers. Requests below
	// it are never sent to the instance.
	Reserved = "/.basalt/"
	// EnterPath is the path of a link, which has a pass in its fragment.
	EnterPath = Reserved + "enter"

	// visitCookie has the prefix with which browsers accept a cookie for this host
	// only: what another instance serves cannot set it (RFC 6265bis, section
	// 4.1.3.2).
	visitCookie = "__Host-basalt-visit"
)

// own answers requests below Reserved.
func (g *Gateway) own(w http.ResponseWriter, r *http.Request, to Target) {
	switch {
	case r.URL.Path != EnterPath:
		http.NotFound(w, r)
	case r.Method == http.MethodGet:
		writeEntrance(w)
	case r.Method == http.MethodPost:
		g.enter(w, r, to)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// enter exchanges a link's pass for the cookie of a visit.
func (g *Gateway) enter(w http.ResponseWriter, r *http.Request, to Target) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPass))
	if err != nil || foreign(r) {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	p, err := g.o.Keys.open(r.Context(), string(text), toEnter, g.o.Now())
	if err == nil && p.Target != to {
		err = errPass
	}
	if err == nil {
		p.Use, p.Ends = toVisit, g.o.Now().Add(visitLife)
		var value string
		if value, err = g.o.Keys.sign(r.Context(), p); err == nil {
			http.SetCookie(w, &http.Cookie{Name: visitCookie, Value: value, Path: "/", MaxAge: int(visitLife / time.Second), Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if errors.Is(err, errPass) {
		http.Error(w, "the link is not valid any more", http.StatusForbidden)
		return
	}
	g.o.Log.Warn("app gateway: enter failed", "instance", to.Instance, "error", err)
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}
