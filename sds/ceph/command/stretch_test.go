package command

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStretches(t *testing.T) {
	const base = 30 * time.Second
	var s stretches
	for i, c := range []struct {
		program string
		took    time.Duration
		err     error
		want    time.Duration // the next limit
	}{
		{"ceph", 30 * time.Second, ErrTimeout, 60 * time.Second},
		{"rbd", time.Second, nil, 30 * time.Second},
		{"ceph", 47 * time.Second, nil, 60 * time.Second}, // it needs that
		{"ceph", 25 * time.Second, &Error{Program: "ceph", Errno: syscall.EPERM, Says: "timed out"}, 120 * time.Second},
		{"ceph", 5 * time.Second, &Error{Program: "ceph", Errno: syscall.EINVAL}, 120 * time.Second},
		{"ceph", 120 * time.Second, ErrTimeout, 240 * time.Second},
		{"ceph", 240 * time.Second, ErrTimeout, 240 * time.Second},
		{"ceph", 2 * time.Second, nil, 120 * time.Second},
		{"ceph", 2 * time.Second, nil, 60 * time.Second},
		{"ceph", 2 * time.Second, nil, 30 * time.Second},
		{"ceph", 2 * time.Second, nil, 30 * time.Second},
	} {
		s.ended(c.program, base, s.limit(c.program, base), c.took, c.err)
		if got := s.limit(c.program, base); got != c.want {
			t.Fatalf("%d: limit after %s ended with %v after %v = %v, want %v", i, c.program, c.err, c.took, got, c.want)
		}
	}
	// Many that ran at once with the same limit double it once.
	for range 5 {
		s.ended("ceph", base, base, base, ErrTimeout)
	}
	if got := s.limit("ceph", base); got != 2*base {
		t.Errorf("limit after five time-outs at once = %v, want %v", got, 2*base)
	}
}

func TestConnectTimeout(t *testing.T) {
	for program, want := range map[string]string{
		"ceph": "--conf /none --id admin --no-mon-config --connect-timeout 10 osd dump\n",
		"rbd":  "--conf /none --id admin --no-mon-config osd dump\n",
	} {
		fakeProgram(t, program, `echo "$@"`)
		out, err := Runner{Conf: "/none"}.Run(t.Context(), strings.NewReader(""), program, "osd", "dump")
		if err != nil || string(out) != want {
			t.Errorf("arguments of %s = %q, %v, want %q", program, out, err, want)
		}
	}
}
