package worker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// What is full loses the oldest texts, and never counts more than it may.
func TestOutputIsARing(t *testing.T) {
	o := output{limit: 1000}
	if !o.add(1, []byte("first")) || o.add(1, []byte("second")) {
		t.Error("add does not say which text is the first")
	}
	for i := range 1000 {
		o.add(1, fmt.Appendf(nil, "line %d\n", i))
		if o.held > o.limit || o.held != held(&o) {
			t.Fatalf("%d bytes counted, %d held, %d allowed", o.held, held(&o), o.limit)
		}
	}
	b := make([]byte, 1<<16)
	n, to := o.take(b)
	if got := string(b[:n]); to != 1 || strings.Contains(got, "line 900\n") || !strings.HasSuffix(got, "line 998\nline 999\n") || !strings.HasPrefix(got, "line 9") {
		t.Errorf("%q to %d", got, to)
	}
	if n, to := o.take(b); n != 0 || to != 0 || o.held != 0 || !o.add(1, []byte("again")) {
		t.Errorf("then %d bytes to %d, %d held", n, to, o.held)
	}
	o.add(2, bytes.Repeat([]byte("x"), 5000))
	if n, to := o.take(b); n != 1000-outputCost || to != 2 {
		t.Errorf("of a text that is too long %d bytes to %d", n, to)
	}
}

func held(o *output) (n uint64) {
	for _, t := range o.texts {
		n += uint64(len(t.text)) + outputCost
	}
	return n
}

// A piece goes to one place, and a text may be taken in parts.
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
		t.Errorf("%q, want %q", got, want)
	}
	if n, _ := o.take(nil); n != 0 {
		t.Error(n)
	}
}
