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
			t.Errorf("TakeToken = %q, %v; want %q", got, err, want)
		}
	}
	if _, err := PassToken(strings.Repeat("t", MaxToken+1)); err == nil {
		t.Errorf("PassToken accepted a token of %d bytes", MaxToken+1)
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
	w.Close() // the process that would give the token was killed
	if got, err := TakeToken(fd); err == nil {
		t.Errorf("TakeToken of a closed pipe = %q, want an error", got)
	}
	if got, err := TakeToken(1 << 20); err == nil {
		t.Errorf("TakeToken of an invalid descriptor = %q, want an error", got)
	}
}
