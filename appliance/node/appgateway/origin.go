package appgateway

import (
	"net/http"
	"net/url"
	"strings"
)

// foreign reports whether a page of another origin sent the request, to which the
// browser adds the cookie by itself. What other instances serve is the same site
// (they share the domain), so SameSite does not exclude them. Following a link into
// the app is allowed: it only shows a page.
func foreign(r *http.Request) bool {
	follows := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	switch r.Header.Get("Sec-Fetch-Site") { // Fetch Metadata; pages cannot set it
	case "same-origin", "none":
		return false
	case "":
		return otherOrigin(r)
	}
	return !follows
}

// otherOrigin is foreign for browsers without Fetch Metadata. They send the Origin
// of requests that are not a plain GET, and of each WebSocket (RFC 6455, section
// 10.2).
func otherOrigin(r *http.Request) bool {
	named := r.Header.Get("Origin")
	if named == "" {
		return false
	}
	o, err := url.Parse(named)
	return err != nil || o.Scheme != "https" || !strings.EqualFold(o.Host, r.Host)
}
