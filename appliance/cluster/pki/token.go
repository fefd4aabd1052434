package pki

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"unicode"

	"github.com/basalt-gpu/basalt/api"
)

const (
	tokenPrefix  = "bslt-join-"
	tokenVersion = 1
	maxToken     = 8 << 10 // bytes
	maxPeers     = 16
	secretSize   = 32 // bytes
)

// Token admits one new node to a cluster. Its text is "bslt-join-" and the
// base64url of its JSON.
type Token struct {
	Version int      `json:"v"`
	Cluster string   `json:"cluster"`
	CA      string   `json:"ca"`     // SHA-256 of the DER of the CA that the new node trusts, in hex
	Peers   []string `json:"peers"`  // host:port of members' peer ports
	ID      string   `json:"id"`     // of the JoinToken
	Secret  string   `json:"secret"` // base64url; the cluster keeps only its hash
}

// NewToken creates a token with a new secret. id is the ID of the JoinToken.
func NewToken(cluster, caFingerprint string, peers []string, id string) (Token, error) {
	var secret [secretSize]byte
	_, _ = rand.Read(secret[:]) // crypto/rand never returns an error
	t := Token{
		Version: tokenVersion, Cluster: cluster, CA: caFingerprint, Peers: peers, ID: id,
		Secret: base64.RawURLEncoding.EncodeToString(secret[:]),
	}
	return t, t.check()
}

// String returns the token's text, which is secret.
func (t Token) String() string {
	raw, err := json.Marshal(t)
	if err != nil {
		return "" // strings and a number always marshal
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// Hash returns the hash of the secret that the cluster stores.
func (t Token) Hash() string { return HashSecret(t.Secret) }

// HashSecret returns the SHA-256, in hex, of a token's secret.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// SecretMatches compares a secret with a stored hash in constant time.
func SecretMatches(hash, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hash), []byte(HashSecret(secret))) == 1
}

const anotherToken = "create another with `basalt node token create` on a node of the cluster, and copy it completely"

func badToken(format string, args ...any) *api.Error {
	return api.Errorf(api.CodeInvalid, "the join token "+format, args...).WithHint(anotherToken).At("token")
}

// ParseToken parses a token as a person pastes it. White space, which terminals
// insert at line breaks, is ignored.
func ParseToken(text string) (Token, error) {
	if len(text) > maxToken {
		return Token{}, badToken("is longer than %d bytes", maxToken)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	if text == "" {
		return Token{}, badToken("is empty")
	}
	encoded, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return Token{}, badToken("does not begin with %s", tokenPrefix)
	}
	encoded = strings.TrimRight(encoded, "=")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return Token{}, badToken("is damaged: part of it is missing or was changed")
	}
	var version struct {
		Version int `json:"v"`
	}
	if json.Unmarshal(raw, &version) != nil {
		return Token{}, badToken("is damaged: part of it is missing or was changed")
	}
	if version.Version != tokenVersion {
		return Token{}, badToken("has version %d, this node supports version %d", version.Version, tokenVersion).
			WithHint("install the cluster's version of Basalt on this node")
	}
	var t Token
	if json.Unmarshal(raw, &t) != nil {
		return Token{}, badToken("is damaged: part of it is missing or was changed")
	}
	if err := t.check(); err != nil {
		return Token{}, err
	}
	return t, nil
}

func (t Token) check() error {
	if !clusterPattern.MatchString(t.Cluster) {
		return badToken("has no valid name of a cluster")
	}
	if print, err := hex.DecodeString(t.CA); err != nil || len(print) != sha256.Size || strings.ToLower(t.CA) != t.CA {
		return badToken("has no valid fingerprint of the cluster's CA")
	}
	if secret, err := base64.RawURLEncoding.DecodeString(t.Secret); err != nil || len(secret) != secretSize {
		return badToken("has no valid secret")
	}
	if !nodePattern.MatchString(t.ID) {
		return badToken("has no valid ID")
	}
	if len(t.Peers) == 0 || len(t.Peers) > maxPeers {
		return badToken("has %d addresses of members, want 1 to %d", len(t.Peers), maxPeers)
	}
	for _, p := range t.Peers {
		if !isHostPort(p) {
			return badToken("has an invalid address of a member: %q", clip(p))
		}
	}
	return nil
}

func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || len(host) > 253 {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && (net.ParseIP(host) != nil || isDNSName(host))
}
