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
	r, w, err := TokenPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd, err := unix.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	w.Close() // its giver was killed
	if got, err := TakeToken(fd); err == nil {
		t.Errorf("%q from nobody", got)
	}
	if got, err := TakeToken(1 << 20); err == nil {
		t.Errorf("%q from no descriptor", got)
	}
}
