package answers

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

// Token is the content of a join token. The installer does not use its secret, and only
// passes it on.
type Token struct {
	Version int       `json:"v"`
	Cluster string    `json:"cluster"`
	CA      string    `json:"ca"` // SHA-256 of the CA's certificate, hex
	Peers   []string  `json:"peers"`
	ID      string    `json:"id"`
	Secret  string    `json:"secret"`
	Expires time.Time `json:"expiresAt,omitzero"` // zero: unknown
}

const (
	tokenPrefix = "bslt-join-"
	tokenHint   = "make one with `basalt node token create` on a member and paste all of it"
	maxToken    = 8 << 10
	maxPeers    = 32
)

var fingerprint = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseToken checks a token's form. White space from pasting over several lines is
// ignored.
func ParseToken(s string) (Token, error) {
	var t Token
	s = strings.Join(strings.Fields(s), "")
	body, ok := strings.CutPrefix(s, tokenPrefix)
	switch {
	case !ok:
		return t, bad(tokenHint, "a join token begins with %s", tokenPrefix)
	case len(s) > maxToken:
		return t, bad(tokenHint, "the join token is too long")
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(body, "="))
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	switch {
	case err != nil:
		return t, bad(tokenHint, "the join token is damaged or not complete")
	case t.Version != 1:
		return t, bad("install this node with the version of Basalt that the cluster runs", "the join token is of version %d; this installer knows version 1", t.Version)
	case t.ID == "" || t.Secret == "" || !fingerprint.MatchString(strings.ToLower(t.CA)):
		return t, bad(tokenHint, "the join token is damaged or not complete")
	case len(t.Peers) == 0 || len(t.Peers) > maxPeers:
		return t, bad(tokenHint, "the join token names no members of the cluster")
	}
	for _, p := range t.Peers {
		if _, port, err := net.SplitHostPort(p); err != nil || port == "" {
			return t, bad(tokenHint, "the join token is damaged: %q is not the address of a member", strictyaml.Clip(p))
		}
	}
	return t, nil
}

// Expired reports whether the token has expired. The cluster refuses an expired token;
// detecting it early saves an installation. The machine's clock may be wrong, so
// callers only warn.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && now.After(t.Expires) }
