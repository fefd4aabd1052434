package wire

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTokenIsReadOnce(t *testing.T) {
	f, err := PassToken("secret")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, want := range []string{"secret", ""} {
		fd, err := unix.Dup(int(f.Fd())) // TakeToken closes its own
		if err != nil {
			t.Fatal(err)
		}
		if got, err := TakeToken(fd); got != want || (err == nil) != (want != "") {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if _, err := PassToken(strings.Repeat("t", MaxToken+1)); err == nil {
		t.Error("a token that is too long was passed")
	}
	if got, err := TakeToken(1 << 20); err == nil {
		t.Errorf("%q from no descriptor", got)
	}
}
