package appgateway

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// cleanAnswer confines a guest to its own origin: it may set no cookies for other
// instances or the gateway and delete none, and name no other server for its address.
func cleanAnswer(r *http.Response) error {
	set := r.Header["Set-Cookie"]
	r.Header.Del("Set-Cookie")
	for _, line := range set {
		if own, ok := hostOnly(line); ok {
			r.Header.Add("Set-Cookie", own)
		}
	}
	r.Header.Del("Alt-Svc")
	r.Header.Del("Clear-Site-Data") // "cookies" means those of the whole registered domain
	if to := r.Header.Get("Location"); to != "" {
		r.Header.Set("Location", secured(to, r.Request.Host))
	}
	guardWorker(r)
	return nil
}

// hostOnly returns a Set-Cookie without its domain. It is not ok if it sets the
// gateway's own cookie.
func hostOnly(line string) (string, bool) {
	parts := strings.Split(line, ";")
	name, _, _ := strings.Cut(strings.TrimLeft(parts[0], " \t="), "=") // "=a=b" has no name, and is sent as a=b
	if strings.TrimSpace(name) == visitCookie {
		return "", false
	}
	parts = slices.DeleteFunc(parts, func(attribute string) bool {
		name, _, _ := strings.Cut(attribute, "=")
		return strings.EqualFold(strings.TrimSpace(name), "domain")
	})
	return strings.Join(parts, ";"), true
}

// secured returns a redirect with scheme https if it leads to the app's own address.
// Apps that do not trust X-Forwarded-Proto assume the scheme by which the gateway
// connects to them (Starlette, and so FastAPI and Gradio).
func secured(to, host string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" || !strings.EqualFold(u.Host, host) {
		return to
	}
	u.Scheme = "https"
	return u.String()
}

// workerGuard precedes each service worker's script. The worker does not receive
// requests for the gateway's own pages: one that answers all navigation from a cache
// would otherwise keep its users from entering again.
const workerGuard = `addEventListener("fetch",(e)=>{if(new URL(e.request.url).pathname.startsWith("` + Reserved + `"))e.stopImmediatePropagation()});`

// isWorker reports whether a browser requests the script of a service worker (Service
// Workers, section "Update").
func isWorker(h http.Header) bool { return h.Get("Service-Worker") == "script" }

func guardWorker(r *http.Response) {
	if !isWorker(r.Request.Header) || r.StatusCode != http.StatusOK || r.Header.Get("Content-Encoding") != "" {
		return
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(workerGuard), r.Body), r.Body}
	if r.ContentLength >= 0 {
		r.ContentLength += int64(len(workerGuard))
		r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
}
