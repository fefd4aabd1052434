// Package terminal determines the properties of a terminal before the full-screen
// programs draw on it.
//
// bubbletea queries the terminal for its background color in an init function, and
// waits five seconds for a response that the log of a serial line never gives. Setting
// a dark background beforehand prevents the query. That works because packages are
// initialized in the order of their import paths as far as their imports allow (Go
// specification, "Program initialization"): this one imports lipgloss and not
// bubbletea, and github.com/basalt-gpu comes before github.com/charmbracelet. A test in
// basalt-console checks it.
package terminal

import (
	"strings"

	"github.com/charmbracelet/lipgloss"
)

func init() { lipgloss.SetHasDarkBackground(true) }

// Plain reports whether a terminal ($TERM) may be limited to ASCII characters: hardware
// terminals on a serial line, and whatever has such a name.
func Plain(term string) bool {
	for _, known := range []string{"linux", "xterm", "screen", "tmux", "rxvt", "alacritty", "foot"} {
		if strings.HasPrefix(term, known) {
			return false
		}
	}
	return true
}
