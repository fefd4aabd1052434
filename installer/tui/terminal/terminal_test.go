package terminal

import "testing"

func TestPlain(t *testing.T) {
	for term, want := range map[string]bool{"vt220": true, "vt100": true, "": true, "dumb": true, "linux": false, "xterm-256color": false, "tmux-256color": false} {
		if Plain(term) != want {
			t.Errorf("Plain(%s) = %v, want %v", term, !want, want)
		}
	}
}
