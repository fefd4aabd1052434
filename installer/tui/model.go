// Package tui is the interactive installer: pages on a screen of at least 80 by 24
// characters, on the console or a serial line.
//
//	welcome ─► hardware ─► disk ─► mirror ─► network ─► cluster ─► access ─► GPU ─► summary ─► progress ─► end
//	      ◄────────◄────────◄──────────◄─────────◄──────────◄──────────◄──────◄────────◄──(failed)
//	help, log, leave: over any page
//
// Update is pure: effects are commands that call System and whose results return as
// messages. Going back loses no input, since every page keeps its own fields.
package tui

import (
	"context"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"
)

// System is the machine that the installer runs on.
type System interface {
	Disks(ctx context.Context) ([]machine.Disk, error)
	NICs(ctx context.Context) ([]machine.NIC, error)
	// Try tries a path at once; name is "main" or "second".
	Try(ctx context.Context, name string, nic machine.NIC, p answers.Path, gateway netip.Addr, dns []netip.Addr) (network.Up, []network.Check)
	// Hardware checks the machine (appliance/node/hardware).
	Hardware(ctx context.Context) []api.HardwareCheck
	// GPUs returns the NVIDIA GPUs on the PCI bus.
	GPUs() []hardware.GPU
	// CheckPackages returns an error unless the place has the packages of NVIDIA's driver.
	CheckPackages(ctx context.Context, p answers.Place) error
	Reach(ctx context.Context, t answers.Token) []network.Check
	Install(ctx context.Context, r install.Request, progress func(install.Progress)) error
	Log() string
	Shell() *exec.Cmd
	End(a answers.After) error
}

// page is a page of the installer.
type page interface {
	name() string
	enter(m *Model) tea.Cmd // called whenever it is shown
	update(m *Model, msg tea.Msg) tea.Cmd
	body(m *Model) string
	keys() string // the line at the bottom
	help() string
}

// Model is the model of the whole installer.
type Model struct {
	sys           System
	look          look
	version       string
	width, height int
	now           func() time.Time
	tick          func() tea.Cmd // nil: no timer

	pages []page
	at    int
	over  overlay

	request install.Request
	leave   answers.After // requested at the end
}

// Options are options of the screen.
type Options struct {
	Version string
	Plain   bool // only ASCII, for terminals that may have no other characters
	Now     func() time.Time
}

// New returns a model.
func New(sys System, o Options) *Model {
	m := &Model{sys: sys, look: newLook(o.Plain), version: o.Version, width: minWidth, height: minHeight, now: o.Now}
	m.request.Answers = answers.Answers{Serial: "ttyS0", After: answers.Reboot}
	m.tick = func() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }
	m.pages = []page{&welcomePage{}, &hardwarePage{}, newDiskPage(), newMirrorPage(), newNetworkPage(), newClusterPage(), newAccessPage()}
	if gpus := sys.GPUs(); len(gpus) > 0 {
		m.pages = append(m.pages, newGPUPage(gpus))
	}
	m.pages = append(m.pages, &summaryPage{}, &progressPage{}, &endPage{})
	return m
}

// tickMsg arrives every second while something is running.
type tickMsg struct{}

const (
	minWidth  = 80
	minHeight = 24
	maxWidth  = 100
)

// Init enters the welcome page.
func (m *Model) Init() tea.Cmd { return m.pages[0].enter(m) }

// Update handles a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		// A serial line has no size and reports 0.
		m.width, m.height = max(minWidth, min(msg.Width, maxWidth)), max(minHeight, msg.Height)
		return m, nil
	case shellMsg:
		return m, tea.ClearScreen
	case tea.KeyMsg:
		if len(msg.Runes) > 1 {
			return m, m.typed(msg.Runes)
		}
		if m.over != none {
			return m, m.overKey(msg)
		}
		switch msg.String() {
		case "ctrl+c":
			m.over = leaving
			return m, nil
		case "f1":
			m.over = helping
			return m, nil
		case "f2":
			return m, m.shell()
		case "f3", "ctrl+l":
			m.over = logging
			return m, nil
		case "?":
			if !m.typing() {
				m.over = helping
				return m, nil
			}
		}
	}
	return m, m.pages[m.at].update(m, msg)
}

// typed handles text that arrived at once, such as a pasted word, letter by letter: as
// a whole, the word "home" would be taken for the key of that name.
func (m *Model) typed(text []rune) tea.Cmd {
	var cmds []tea.Cmd
	for _, r := range text {
		_, cmd := m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		cmds = append(cmds, cmd)
	}
	return tea.Batch(cmds...)
}

// typist is a page whose fields accept every character.
type typist interface{ typing() bool }

func (m *Model) typing() bool {
	t, ok := m.pages[m.at].(typist)
	return ok && t.typing()
}

// next enters the next page.
func (m *Model) next() tea.Cmd {
	m.at = min(m.at+1, len(m.pages)-1)
	return m.pages[m.at].enter(m)
}

// back enters the previous page.
func (m *Model) back() tea.Cmd {
	m.at = max(m.at-1, 0)
	return m.pages[m.at].enter(m)
}

// goTo enters a page by its name.
func (m *Model) goTo(name string) tea.Cmd {
	for i, p := range m.pages {
		if p.name() == name {
			m.at = i
			return p.enter(m)
		}
	}
	return nil
}

// shellMsg arrives when the shell has ended.
type shellMsg struct{}

func (m *Model) shell() tea.Cmd {
	return tea.ExecProcess(m.sys.Shell(), func(error) tea.Msg { return shellMsg{} })
}

// View returns the page in its frame. It always fills the whole screen, so that nothing
// of an earlier page remains on a terminal that cannot clear lines.
func (m *Model) View() string {
	p := m.pages[m.at]
	body, keys := p.body(m), p.keys()
	if m.over != none {
		body, keys = m.overView()
	}
	lines := strings.Split(body, "\n")
	room := m.height - 4
	if len(lines) > room {
		lines = lines[:room]
	}
	for len(lines) < room {
		lines = append(lines, "")
	}
	for i := range lines {
		lines[i] = fit("  "+lines[i], m.width-1)
	}
	return m.header(p) + "\n\n" + strings.Join(lines, "\n") + "\n" +
		m.look.dim.Render(strings.Repeat(m.look.rule, m.width-1)) + "\n" + fit(" "+keys, m.width-1)
}

func (m *Model) header(p page) string {
	left := " BASALT  " + m.version
	right := p.name() + "  "
	if m.at > 0 && m.at < len(m.pages)-1 {
		right = stepsLine(m, p)
	}
	if len(left)+len(right) > m.width-1 { // the version is on the first page
		left = " BASALT"
	}
	gap := max(1, m.width-1-len(left)-len(right))
	return m.look.bar.Render(left + strings.Repeat(" ", gap) + right)
}

// stepsLine shows where in the installation this page is.
func stepsLine(m *Model, p page) string {
	var all []string
	for _, q := range m.pages[1 : len(m.pages)-1] {
		name := q.name()
		if q == p {
			name = "[" + name + "]"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ") + " "
}
