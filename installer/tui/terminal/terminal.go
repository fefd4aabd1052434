// Package terminal is what the full-screen programs know of a terminal before
// they draw on it.
//
// bubbletea asks the terminal for its background colour in an init function,
// and waits five seconds for an answer that a serial line's log never gives.
// Saying beforehand that the background is dark keeps it from asking. That
// works because packages are initialized in the order of their import paths as
// far as their imports allow (Go specification, "Program initialization"): this
// one imports lipgloss and not bubbletea, and github.com/basalt-gpu comes before
// github.com/charmbracelet. A test in basalt-console holds it.
package terminal

import (
	"strings"

	"github.com/charmbracelet/lipgloss"
)

func init() { lipgloss.SetHasDarkBackground(true) }

// Plain reports whether a terminal ($TERM) may have no characters but ASCII: real
// ones on a serial line, and whatever calls itself one.
func Plain(term string) bool {
	for _, known := range []string{"linux", "xterm", "screen", "tmux", "rxvt", "alacritty", "foot"} {
		if strings.HasPrefix(term, known) {
			return false
		}
	}
	return true
}
