// Package ui is the portal: a program for browsers (src), built by `make ui`
// into dist and embedded here, and the way by which a browser speaks to the API
// (door.go). Without dist everything else works, and the portal's address says
// what is missing.
package ui

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed all:dist
var embedded embed.FS

// Policy is what the portal's pages may do: nothing but what this server sends,
// no script or style in a page's text, no eval, and strings become no script.
const Policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// captchaPage is the page on which people sign up where a captcha is asked for, and the
// only one that lets scripts of others run: those of the providers that an operator can
// choose. The page loads that of the one that is set, and none where none is.
const captchaPage = "/sign-up"

// CaptchaPolicy is what that page may do, as the providers' documentation wants it. Their
// scripts write markup, so that it has no trusted types.
const CaptchaPolicy = "default-src 'self'" +
	"; script-src 'self' https://hcaptcha.com https://*.hcaptcha.com https://challenges.cloudflare.com https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/" +
	"; frame-src https://hcaptcha.com https://*.hcaptcha.com https://challenges.cloudflare.com https://www.google.com/recaptcha/ https://recaptcha.google.com/recaptcha/" +
	"; style-src 'self' https://hcaptcha.com https://*.hcaptcha.com" +
	"; connect-src 'self' https://hcaptcha.com https://*.hcaptcha.com" +
	"; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// policyOf is the policy of a page or file.
func policyOf(path string) string {
	if path == captchaPage {
		return CaptchaPolicy
	}
	return Policy
}

// Handler answers the portal's own addresses, and leaves all others to the API.
func Handler(api http.Handler) http.Handler {
	dist, err := fs.Sub(embedded, "dist")
	if err != nil {
		panic(err) // the name is constant and valid
	}
	return newHandler(dist, api)
}

func newHandler(dist fs.FS, api http.Handler) http.Handler {
	pages, door := newAssets(dist), door{api}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.Handle(doorPath+"v1/", door)
	for path, name := range pages.paths() {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { pages.serve(w, r, name) })
	}
	return mux
}
