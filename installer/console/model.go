package console

import (
	"context"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/api"
)

// Machine is what the screen observes and the keys control.
type Machine interface {
	Observe(ctx context.Context) State
	Log(lines int) string
	Reboot() error
	PowerOff() error
}

// Polling intervals: while a change may be expected, and when everything is in order.
const (
	soon  = 2 * time.Second
	later = 10 * time.Second
)

// again returns the polling interval after this observation.
func again(s State) time.Duration {
	if u := s.Setup; u != nil && u.State == api.SetupMember && u.Quorum && u.Alive >= u.Members {
		return later
	}
	return soon
}

type mode int

const (
	watching mode = iota
	rebooting
	poweringOff
	logging
	going // restarting or shutting down
)

// Model is the model of the screen.
//
//	watching ─r─► asked to restart ─y─► going
//	    │ └──p─► asked to switch off ─y─► going
//	    └──l─► log ─any key─► watching
type Model struct {
	machine Machine
	look    look
	size    Size
	seen    State
	mode    mode
	log     string
	err     string
	tick    func(time.Duration, tea.Msg) tea.Cmd // nil: no timer
}

// New returns a model. plain restricts it to ASCII.
func New(m Machine, plain bool) *Model {
	return &Model{machine: m, look: newLook(plain), size: Size{80, 24}, tick: func(d time.Duration, msg tea.Msg) tea.Cmd {
		return tea.Tick(d, func(time.Time) tea.Msg { return msg })
	}}
}

type (
	seenMsg  State
	lookMsg  struct{}
	logMsg   string
	wentMsg  struct{ err error }
	againMsg struct{}
)

// Init starts the first observation.
func (m *Model) Init() tea.Cmd { return m.watch }

func (m *Model) watch() tea.Msg { return seenMsg(m.machine.Observe(context.Background())) }

// Update handles a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.size = Size{max(80, min(msg.Width, 120)), max(24, msg.Height)}
	case seenMsg:
		m.seen = State(msg)
		if m.tick != nil {
			return m, m.tick(again(m.seen), lookMsg{})
		}
	case lookMsg:
		return m, m.watch
	case logMsg:
		m.log = string(msg)
		if m.mode == logging && m.tick != nil {
			return m, m.tick(soon, againMsg{})
		}
	case againMsg:
		if m.mode == logging {
			return m, m.readLog
		}
	case wentMsg:
		if m.err, m.mode = "", watching; msg.err != nil {
			m.err = msg.err.Error()
		} else {
			m.mode = going
		}
	case tea.KeyMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

func (m *Model) readLog() tea.Msg { return logMsg(m.machine.Log(m.size.Height)) }

func (m *Model) key(key string) tea.Cmd {
	was := m.mode
	if was == going {
		return nil
	}
	m.mode, m.err = watching, ""
	switch {
	case was == rebooting && key == "y":
		return func() tea.Msg { return wentMsg{m.machine.Reboot()} }
	case was == poweringOff && key == "y":
		return func() tea.Msg { return wentMsg{m.machine.PowerOff()} }
	case was != watching:
		return nil // any other key returns
	case key == "r":
		m.mode = rebooting
	case key == "p":
		m.mode = poweringOff
	case key == "l":
		m.mode = logging
		return m.readLog
	}
	return nil
}

// View returns the screen.
func (m *Model) View() string {
	at := clock(m.seen)
	ask := func(what string) string {
		return frame([]string{
			m.look.title.Render(what), "",
			"Virtual machines on this node are stopped with it; those whose disks other",
			"nodes have as well are started there. To move them away first, with no",
			"interruption:  basalt node drain " + clean(m.seen.Host), "",
			m.look.bold.Render("y") + "  yes        any other key: no",
		}, m.size, m.look, "y yes   any other key no", at)
	}
	switch m.mode {
	case rebooting:
		return ask("Restart this node?")
	case poweringOff:
		return ask("Switch this node off?")
	case going:
		return frame([]string{m.look.warn.Render("Going down ...")}, m.size, m.look, "", at)
	case logging:
		lines := strings.Split(strings.TrimRight(m.log, "\n"), "\n")
		lines = lines[max(0, len(lines)-(m.size.Height-5)):]
		body := []string{m.look.title.Render("The end of basaltd's log"), ""}
		for _, line := range lines {
			body = append(body, clean(line))
		}
		return frame(body, m.size, m.look, "any key goes back   all of it: journalctl -u basaltd", at)
	}
	if m.err != "" {
		return frame([]string{m.look.bad.Render("That failed: " + clean(m.err)), "", "Sign in with Alt-F2 and try there, or use the power button."}, m.size, m.look, "any key goes back", at)
	}
	return View(m.seen, m.size, m.look)
}
