package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/api"
)

// hardwarePage shows problems of the computer before anything is asked.
type hardwarePage struct {
	checks  []api.HardwareCheck // nil: not checked yet
	looking bool
	cursor  int // among those with problems
}

type hardwareMsg struct{ checks []api.HardwareCheck }

func (*hardwarePage) name() string { return "Hardware" }

func (p *hardwarePage) enter(m *Model) tea.Cmd {
	if p.checks != nil {
		return nil
	}
	return p.scan(m)
}

func (p *hardwarePage) scan(m *Model) tea.Cmd {
	p.looking = true
	return func() tea.Msg { return hardwareMsg{m.sys.Hardware(context.Background())} }
}

// ofNodes are checks that are meaningful only in a cluster, not on the medium.
var ofNodes = []api.HardwareCheckID{api.HardwarePathMTU, api.HardwareClock}

func (p *hardwarePage) update(m *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case hardwareMsg:
		p.looking, p.cursor = false, 0
		p.checks = []api.HardwareCheck{}
		for _, c := range msg.checks {
			if !slices.Contains(ofNodes, c.ID) {
				p.checks = append(p.checks, c)
			}
		}
	case tea.KeyMsg:
		return p.key(m, msg.String())
	}
	return nil
}

func (p *hardwarePage) key(m *Model, key string) tea.Cmd {
	bad := p.bad()
	switch key {
	case "esc":
		return m.back()
	case "up", "k", "shift+tab":
		p.cursor = max(0, p.cursor-1)
	case "down", "j", "tab":
		p.cursor = max(0, min(p.cursor+1, len(bad)-1))
	case "r":
		return p.scan(m)
	case "enter":
		if !p.looking && p.failed() == 0 {
			return m.next()
		}
	case "g", "G":
		if !p.looking {
			return m.next()
		}
	}
	return nil
}

// rank orders states: the worst come first.
var rank = map[api.HardwareState]int{api.HardwareFailed: -2, api.HardwareWarning: -1}

// bad returns the checks that are not OK, failed ones first.
func (p *hardwarePage) bad() (all []api.HardwareCheck) {
	for _, c := range p.checks {
		if c.State != api.HardwareOK {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b api.HardwareCheck) int { return rank[a.State] - rank[b.State] })
	return all
}

func (p *hardwarePage) failed() (n int) {
	for _, c := range p.checks {
		if c.State == api.HardwareFailed {
			n++
		}
	}
	return n
}

func (p *hardwarePage) keys() string {
	if p.failed() > 0 {
		return "g go on nonetheless   Up/Down move   r refresh   Esc back   F1 help"
	}
	return "Enter continue   Up/Down move   r refresh   Esc back   F1 help"
}

func (p *hardwarePage) body(m *Model) string {
	if p.looking {
		return "Checking the hardware ..."
	}
	bad := p.bad()
	var b strings.Builder
	b.WriteString(m.look.title.Render("This computer") + "\n\n")
	if len(bad) == 0 {
		b.WriteString(m.look.good.Render(fmt.Sprintf("All %d checks passed.", len(p.checks))) + "\n\nPress Enter to continue.")
		return b.String()
	}
	styles := map[api.HardwareState]func(...string) string{api.HardwareFailed: m.look.bad.Render, api.HardwareWarning: m.look.warn.Render, api.HardwareUnknown: m.look.dim.Render}
	for i, c := range bad {
		mark := "  "
		if i == p.cursor {
			mark = "> "
		}
		b.WriteString(fit(mark+styles[c.State](fmt.Sprintf("%-8s", c.State))+" "+fmt.Sprintf("%-12s", c.ID)+c.Found, m.width-5) + "\n")
	}
	fmt.Fprintf(&b, "  well: %d of %d\n", len(p.checks)-len(bad), len(p.checks))
	c := bad[min(p.cursor, len(bad)-1)]
	for _, text := range []string{c.Found, c.Meaning, c.Advice} {
		if text != "" {
			b.WriteString("\n" + strings.Join(wrap(text, m.width-5), "\n"))
		}
	}
	if p.failed() > 0 {
		b.WriteString("\n\n" + m.look.bad.Render("A node does not work on this hardware.") + " Press " + m.look.chosen.Render("g") + " to install anyway.")
	}
	return b.String()
}

func (*hardwarePage) help() string {
	return `The hardware is checked before anything else. A check fails if a node cannot work without what it checks, for example KVM; a warning is about what makes a node slower or less safe. The checks change nothing.

Change settings in the firmware's setup and boot the medium again, or continue: the installed node repeats the checks (basalt doctor hardware).`
}
