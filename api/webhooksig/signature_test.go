package webhooksig

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

var at = time.Unix(1614265330, 0)

// TestKnownSignature uses the example of the specification's reference libraries.
func TestKnownSignature(t *testing.T) {
	const secret, id, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`
	got, err := Sign([]string{secret}, id, at, []byte(body))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("Sign = %s, %v, want %s", got, err, want)
	}
}

func TestVerify(t *testing.T) {
	secret, old, other := NewSecret(), NewSecret(), NewSecret()
	sig, err := Sign([]string{secret, old}, "evt-1", at, []byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	ts := strconv.FormatInt(at.Unix(), 10)
	for _, c := range []struct {
		name, secret, id, ts, sig, body string
		now                             time.Time
		ok                              bool
	}{
		{"good", secret, "evt-1", ts, sig, "body", at.Add(time.Minute), true},
		{"by the old secret", old, "evt-1", ts, sig, "body", at, true},
		{"bare secret", strings.TrimPrefix(secret, secretPrefix), "evt-1", ts, sig, "body", at, true},
		{"other versions beside it", secret, "evt-1", ts, "v2,xx v1a,yy " + sig, "body", at, true},
		{"another's secret", other, "evt-1", ts, sig, "body", at, false},
		{"another id", secret, "evt-2", ts, sig, "body", at, false},
		{"another time", secret, "evt-1", "1614265331", sig, "body", at, false},
		{"another body", secret, "evt-1", ts, sig, "bodY", at, false},
		{"too late", secret, "evt-1", ts, sig, "body", at.Add(time.Hour), false},
		{"too early", secret, "evt-1", ts, sig, "body", at.Add(-time.Hour), false},
		{"no signature", secret, "evt-1", ts, "", "body", at, false},
		{"another version only", secret, "evt-1", ts, strings.ReplaceAll(sig, "v1,", "v2,"), "body", at, false},
		{"no time", secret, "evt-1", "", sig, "body", at, false},
		{"no secret", "", "evt-1", ts, sig, "body", at, false},
		{"too many", secret, "evt-1", ts, strings.Repeat("v1,x ", maxSignatures) + sig, "body", at, false},
	} {
		if err := Verify(c.secret, c.id, c.ts, c.sig, []byte(c.body), c.now, 5*time.Minute); (err == nil) != c.ok {
			t.Errorf("%s: Verify = %v, want accepted: %v", c.name, err, c.ok)
		}
	}
	if _, err := Sign(nil, "a", at, nil); err == nil {
		t.Error("Sign without a secret succeeded, want an error")
	}
}

func FuzzVerify(f *testing.F) {
	secret := NewSecret()
	f.Add("evt-1", "1614265330", "v1,aGVsbG8=", []byte("{}"))
	f.Fuzz(func(t *testing.T, id, ts, sig string, body []byte) {
		if Verify(secret, id, ts, sig, body, at, 0) == nil {
			t.Errorf("Verify accepts ID %q, timestamp %q and signature %q, want an error", id, ts, sig)
		}
	})
}
