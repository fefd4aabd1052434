package totp

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestVectors uses the SHA-1 rows of RFC 6238, appendix B, with eight digits.
func TestVectors(t *testing.T) {
	for at, want := range map[int64]string{59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130"} {
		if got := code([]byte("12345678901234567890"), at/period, 8); got != want {
			t.Errorf("code at %d = %s, want %s", at, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	secret, now := NewSecret(), time.Unix(1_700_000_010, 0)
	if secret == NewSecret() || len(secret) != 32 {
		t.Errorf("NewSecret() = %q, want 32 random characters", secret)
	}
	step := now.Unix() / period
	for off, want := range map[int64]bool{-2: false, -1: true, 0: true, 1: true, 2: false} {
		c, err := Code(secret, now.Add(time.Duration(off)*period*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := Check(secret, c, now, 0)
		if err != nil || ok != want || ok && got != step+off {
			t.Errorf("Check %d steps off = step %d, %v, %v; want %v", off, got, ok, err, want)
		}
		// A used code, and all before it, are no longer valid.
		if _, ok, _ := Check(secret, c, now, step+off); ok {
			t.Errorf("code %d steps off is valid a second time, want it refused", off)
		}
	}
	for _, bad := range []string{"", "12345", "1234567", "12345a", "１２３４５６"} {
		if _, ok, err := Check(secret, bad, now, 0); ok || err != nil {
			t.Errorf("Check(%q) = %v, %v; want false without an error", bad, ok, err)
		}
	}
}

func TestURI(t *testing.T) {
	u, err := url.Parse(URI("Basalt", "ann@example.com", "ABC"))
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/Basalt:ann@example.com" || u.Query().Get("secret") != "ABC" || u.Query().Get("issuer") != "Basalt" {
		t.Errorf("URI = %v, %v; want otpauth://totp/Basalt:ann@example.com with the secret", u, err)
	}
}

func FuzzSecret(f *testing.F) {
	f.Add(NewSecret(), "123456")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, secret, given string) {
		_, ok, err := Check(secret, given, time.Unix(1, 0), 0)
		if ok && err != nil || ok && !IsCode(given) {
			t.Errorf("Check(%q, %q) = %v, %v; want true only for a code, without an error", secret, given, ok, err)
		}
		if raw, err := decode(secret); err == nil && text.EncodeToString(raw) != strings.NewReplacer("\r", "", "\n", "").Replace(secret) {
			t.Errorf("secret %q decodes to %x, which encodes differently", secret, raw)
		}
	})
}
