package pki

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func someToken(t testing.TB) Token {
	t.Helper()
	ca, err := NewCA("basalt", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	print, err := ca.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	token, err := NewToken("basalt", print, []string{"10.0.0.1:7481", "[fd00::1]:7481", "host.example:7481"}, "jtk-0123456789ab")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokenRoundTrip(t *testing.T) {
	token := someToken(t)
	text := token.String()
	for _, pasted := range []string{text, "  " + text + "\n", text[:50] + "\r\n" + text[50:90] + "\n  " + text[90:]} {
		got, err := ParseToken(pasted)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != text {
			t.Errorf("token %v was parsed as %v", token, got)
		}
	}
	if !SecretMatches(token.Hash(), token.Secret) || SecretMatches(token.Hash(), token.Secret+"A") || SecretMatches("", "") {
		t.Error("SecretMatches got the wrong results")
	}
	if strings.Contains(token.Hash(), token.Secret) || someToken(t).Secret == token.Secret {
		t.Error("the hash contains the secret, or two tokens have the same secret")
	}
}

// TestParseTokenSaysWhatIsWrong checks that each kind of damage causes an error
// that names it.
func TestParseTokenSaysWhatIsWrong(t *testing.T) {
	token := someToken(t)
	text := token.String()
	raw := func(s string) string { return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(s)) }
	with := func(change func(*Token)) string {
		c := token
		change(&c)
		return c.String()
	}
	for name, c := range map[string]struct{ text, says string }{
		"empty":            {" \n", "empty"},
		"an API key":       {"bslt_0123456789", "begin with bslt-join-"},
		"cut off":          {text[:len(text)-7], "damaged"},
		"without its head": {text[20:], "begin with"},
		"with a typo":      {text[:40] + "%" + text[41:], "damaged"},
		"no JSON":          {raw("hello"), "damaged"},
		"JSON of a list":   {raw("[]"), "damaged"},
		"wrong types":      {raw(`{"v":1,"cluster":7}`), "damaged"},
		"a later version":  {with(func(t *Token) { t.Version = 2 }), "version 2"},
		"no version":       {raw("{}"), "version 0"},
		"huge":             {tokenPrefix + strings.Repeat("A", maxToken), "longer than"},
		"no cluster":       {with(func(t *Token) { t.Cluster = "" }), "name of a cluster"},
		"no fingerprint":   {with(func(t *Token) { t.CA = "abcd" }), "fingerprint"},
		"upper case":       {with(func(t *Token) { t.CA = strings.ToUpper(t.CA) }), "fingerprint"},
		"a short secret":   {with(func(t *Token) { t.Secret = "AAAA" }), "secret"},
		"no id":            {with(func(t *Token) { t.ID = "" }), "ID"},
		"no peers":         {with(func(t *Token) { t.Peers = nil }), "0 addresses"},
		"too many peers":   {with(func(t *Token) { t.Peers = make([]string, maxPeers+1) }), "addresses"},
		"a peer, no port":  {with(func(t *Token) { t.Peers = []string{"10.0.0.1"} }), "10.0.0.1"},
		"a peer, port 0":   {with(func(t *Token) { t.Peers = []string{"10.0.0.1:0"} }), "10.0.0.1:0"},
		"a peer, no host":  {with(func(t *Token) { t.Peers = []string{":7481"} }), ":7481"},
	} {
		_, err := ParseToken(c.text)
		var e *api.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got error %v, want an *api.Error", name, err)
			continue
		}
		if e.Code != api.CodeInvalid || e.Hint == "" || e.Field != "token" || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: got error %+v, want one that contains %q", name, e, c.says)
		}
		if strings.Contains(e.Error(), token.Secret) {
			t.Errorf("%s: the error contains the secret", name)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	token := someToken(f)
	f.Add(token.String())
	f.Add(tokenPrefix)
	raw, _ := json.Marshal(token)
	f.Add(tokenPrefix + base64.RawURLEncoding.EncodeToString(raw[:60]))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			var e *api.Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Errorf("got error %v, want an *api.Error with a hint", err)
			}
			return
		}
		again, err := ParseToken(token.String())
		if err != nil || again.String() != token.String() {
			t.Errorf("token %+v was parsed as %+v: %v", token, again, err)
		}
	})
}
