package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// index is the page that every address of the portal serves; the browser evaluates what follows
// the "#".
const index = "index.html"

// missing is the response of the portal's address in a build without it.
const missing = `This basaltd was built without the portal. Everything else works.

To build it:   make ui && make build
It needs Node.js 20.19 or newer, which make ui installs where there is none.
The API's documentation is at /docs.
`

// assets holds the built files, all compressed: NAME.gz in dist, and NAME.br where that is
// smaller.
type assets struct {
	files map[string]asset // by name, without .gz
}

type asset struct {
	gz, br []byte // br: nil if there is none
	etag   string
}

func newAssets(dist fs.FS) assets {
	a := assets{files: map[string]asset{}}
	_ = fs.WalkDir(dist, ".", func(name string, d fs.DirEntry, err error) error {
		plain, ok := strings.CutSuffix(name, ".gz")
		if err != nil || d.IsDir() || !ok {
			return nil
		}
		gz, err := fs.ReadFile(dist, name)
		if err != nil {
			return nil // an unreadable file is not served
		}
		br, err := fs.ReadFile(dist, plain+".br")
		if err != nil {
			br = nil // browsers receive the gzip file
		}
		sum := sha256.Sum256(gz)
		a.files[plain] = asset{gz, br, hex.EncodeToString(sum[:12])}
		return nil
	})
	return a
}

// paths maps addresses to files. Identity providers redirect browsers to /login/oidc, as their
// response may not follow a "#".
func (a assets) paths() map[string]string {
	out := map[string]string{"/{$}": index, "/login/oidc": index, captchaPage: index}
	for name := range a.files {
		if name != index {
			out["/"+name] = name
		}
	}
	return out
}

func (a assets) serve(w http.ResponseWriter, r *http.Request, name string) {
	h := w.Header()
	h.Set("Content-Security-Policy", policyOf(r.URL.Path))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=()")
	file, ok := a.files[name]
	if !ok {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, missing)
		return
	}
	// Names in assets/ contain a hash of their content.
	if strings.HasPrefix(name, "assets/") {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	coding, body := file.coding(r.Header.Get("Accept-Encoding"))
	etag := `"` + file.etag + coding + `"` // each coding has its own tag
	h.Set("ETag", etag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", contentType(name))
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(file.gz))
	if err != nil {
		http.Error(w, "the portal's build is damaged: make ui", http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, plain) // bounded, as it is part of our own build
}

// coding returns the best coding that the client accepts; an empty name means uncompressed.
func (a asset) coding(header string) (name string, body []byte) {
	switch {
	case a.br != nil && accepts(header, "br"):
		return "br", a.br
	case accepts(header, "gzip"):
		return "gzip", a.gz
	}
	return "", nil
}

// accepts reports whether an Accept-Encoding header lists a coding with a quality other than 0.
func accepts(header, coding string) bool {
	for word := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(word, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			q := strings.TrimPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			n, err := strconv.ParseFloat(q, 64)
			return q == "" || err == nil && n > 0
		}
	}
	return false
}

// contentType returns the type of a file. It does not use the machine's table of types for the
// common ones, as that differs between machines.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}
