// Package ui contains the portal: a program for browsers (src), which `make ui` builds into
// dist and which is embedded here, and the handler through which browsers use the API
// (door.go). Without dist everything else works, and the portal's address shows what is
// missing.
package ui

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed all:dist
var embedded embed.FS

// Policy restricts the portal's pages: they load only what this server sends, without inline
// scripts or styles, without eval, and strings cannot become scripts.
const Policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// captchaPage is the sign-up page, which may ask for a captcha. It is the only page that may
// load scripts of others: those of the providers that an operator can choose. It loads those of
// the configured provider, and none if none is configured.
const captchaPage = "/sign-up"

// CaptchaPolicy is the policy of captchaPage, as the providers' documentation requires it.
// Their scripts write markup, so it has no trusted types.
const CaptchaPolicy = "default-src 'self'" +
	"; script-src 'self' https://hcaptcha.com https://*.hcaptcha.com https://challenges.cloudflare.com https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/" +
	"; frame-src https://hcaptcha.com https://*.hcaptcha.com https://challenges.cloudflare.com https://www.google.com/recaptcha/ https://recaptcha.google.com/recaptcha/" +
	"; style-src 'self' https://hcaptcha.com https://*.hcaptcha.com" +
	"; connect-src 'self' https://hcaptcha.com https://*.hcaptcha.com" +
	"; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// policyOf returns the policy of a page or file.
func policyOf(path string) string {
	if path == captchaPage {
		return CaptchaPolicy
	}
	return Policy
}

// Handler serves the portal's own addresses and passes all others to the API.
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
