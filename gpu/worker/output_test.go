package worker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestOutputIsARing checks that a full FIFO loses the oldest texts, and never
// exceeds its limit.
func TestOutputIsARing(t *testing.T) {
	o := output{limit: 1000}
	if !o.add(1, []byte("first")) || o.add(1, []byte("second")) {
		t.Error("add does not report which text is the first")
	}
	for i := range 1000 {
		o.add(1, fmt.Appendf(nil, "line %d\n", i))
		if o.held > o.limit || o.held != held(&o) {
			t.Fatalf("%d bytes counted, %d held, want the same and at most %d", o.held, held(&o), o.limit)
		}
	}
	b := make([]byte, 1<<16)
	n, to := o.take(b)
	if got := string(b[:n]); to != 1 || strings.Contains(got, "line 900\n") || !strings.HasSuffix(got, "line 998\nline 999\n") || !strings.HasPrefix(got, "line 9") {
		t.Errorf("take = %q to %d, want the last lines, to 1", got, to)
	}
	if n, to := o.take(b); n != 0 || to != 0 || o.held != 0 || !o.add(1, []byte("again")) {
		t.Errorf("second take = %d bytes to %d, %d held; want none, and the next add to be the first", n, to, o.held)
	}
	o.add(2, bytes.Repeat([]byte("x"), 5000))
	if n, to := o.take(b); n != 1000-outputCost || to != 2 {
		t.Errorf("take of a text over the limit = %d bytes to %d, want %d to 2", n, to, 1000-outputCost)
	}
}

func held(o *output) (n uint64) {
	for _, t := range o.texts {
		n += uint64(len(t.text)) + outputCost
	}
	return n
}

// TestOutputIsTakenInPieces checks that take returns text of one destination, and
// that a text may be taken in parts.
func TestOutputIsTakenInPieces(t *testing.T) {
	o := output{limit: 1 << 20}
	for i, text := range []string{"abc", "def", "errors", "ghi"} {
		o.add([]uint32{1, 1, 2, 1}[i], []byte(text))
	}
	var got []string
	for b := make([]byte, 4); ; {
		n, to := o.take(b)
		if n == 0 {
			break
		}
		got = append(got, fmt.Sprint(to, string(b[:n])))
	}
	if want := "1abcd 1ef 2erro 2rs 1ghi"; strings.Join(got, " ") != want {
		t.Errorf("pieces = %q, want %q", got, want)
	}
	if n, _ := o.take(nil); n != 0 {
		t.Errorf("take from an empty FIFO = %d bytes, want 0", n)
	}
}
