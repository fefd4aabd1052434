package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/installer/answers"
)

// overlay is shown over the page.
type overlay int

const (
	none overlay = iota
	helping
	logging
	leaving
)

func (m *Model) overKey(key tea.KeyMsg) tea.Cmd {
	over := m.over
	m.over = none
	if over != leaving {
		return nil // any key
	}
	switch key.String() {
	case "r":
		return m.end(answers.Reboot)
	case "p":
		return m.end(answers.PowerOff)
	case "s":
		return m.shell()
	case "x":
		if p, ok := m.pages[m.at].(*progressPage); ok && p.running() {
			p.stop()
			return nil
		}
	case "esc", "n", "enter":
	default:
		m.over = leaving
	}
	return nil
}

// end asks the machine to restart or shut down; the screen remains until it does.
func (m *Model) end(a answers.After) tea.Cmd {
	m.leave = a
	return tea.Sequence(func() tea.Msg {
		if err := m.sys.End(a); err != nil {
			return endFailedMsg{err}
		}
		return nil
	})
}

type endFailedMsg struct{ err error }

func (m *Model) overView() (body, keys string) {
	width := m.width - 6
	switch m.over {
	case helping:
		return m.look.title.Render("Help: "+m.pages[m.at].name()) + "\n\n" + strings.Join(wrap(m.pages[m.at].help()+"\n\n"+everywhere, width), "\n"), "any key goes back"
	case logging:
		lines := strings.Split(strings.TrimRight(m.sys.Log(), "\n"), "\n")
		if room := m.height - 7; len(lines) > room {
			lines = lines[len(lines)-room:]
		}
		for i := range lines {
			lines[i] = strings.Map(printable, lines[i])
		}
		return m.look.title.Render("The end of the log") + "\n\n" + strings.Join(lines, "\n"), "any key goes back   (whole log: F2 for a shell, less " + LogFile + ")"
	default:
		text := "Nothing has been changed on any disk."
		stop := ""
		if p, ok := m.pages[m.at].(*progressPage); ok && p.running() {
			text = "The installation is running. If it is stopped now, the disk does not\nboot. The node can then be installed again."
			stop = "\n  x     stop the installation"
		} else if m.at == len(m.pages)-1 {
			text = "The node is installed."
		}
		return m.look.title.Render("Leave the installer?") + "\n\n" + text + "\n\n" +
			"  Esc   continue" + stop + "\n  s     a shell; exit comes back here\n  r     restart the computer\n  p     power off", "Esc continue   s shell   r restart   p power off"
	}
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// LogFile is the log of the installer.
const LogFile = "/run/basalt-installer/log"

const everywhere = `On every page: Enter continues, Esc goes back and keeps what you typed, Tab and the arrows move, F2 opens a shell (exit returns), F3 or Ctrl-L shows the log, Ctrl-C asks whether to leave. Nothing is written to a disk before you confirm the summary page.`
