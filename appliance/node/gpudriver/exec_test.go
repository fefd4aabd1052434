package gpudriver

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// shown is a terminal or a journal: a writer that is not a buffer.
type shown struct{ io.Writer }

func TestExec(t *testing.T) {
	var out bytes.Buffer
	err := Exec(t.Context(), []string{"sh", "-c", "echo one; printf 'two\\rthree\\n'; echo >&2 W: a stack; echo >&2 E: it failed; exit 3"}, shown{&out})
	if err == nil || err.Error() != "exit status 3: E: it failed" {
		t.Errorf("Exec of a program that fails: error %v, want its status and its message", err)
	}
	for _, want := range []string{"      one\n", "      three\n", "E: it failed\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output = %q, want %q in it", out.String(), want)
		}
	}
	out.Reset()
	if err := Exec(t.Context(), []string{"sh", "-c", `printf "$DEBIAN_FRONTEND\n"`}, &out); err != nil || out.String() != "noninteractive\n" {
		t.Errorf("collected output = %q, error %v, want %q", out.String(), err, "noninteractive\n")
	}
}
