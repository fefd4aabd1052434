package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// progressPage installs, and shows the reason for a failure.
type progressPage struct {
	seen    []string // texts of the steps so far
	now     install.Progress
	began   time.Time
	elapsed time.Duration
	cancel  context.CancelFunc
	news    chan tea.Msg
	failed  error
}

type progressMsg install.Progress

type installedMsg struct{ err error }

func (*progressPage) name() string { return "Install" }

func (p *progressPage) running() bool { return p.cancel != nil }

func (p *progressPage) stop() {
	if p.cancel != nil {
		p.cancel()
	}
}

// enter starts the installation.
func (p *progressPage) enter(m *Model) tea.Cmd {
	if p.running() {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	news := make(chan tea.Msg, 16)
	*p = progressPage{began: m.now(), cancel: cancel, news: news}
	r := m.request
	go func() {
		err := m.sys.Install(ctx, r, func(at install.Progress) { news <- progressMsg(at) })
		news <- installedMsg{err}
	}()
	cmds := []tea.Cmd{p.listen()}
	if m.tick != nil {
		cmds = append(cmds, m.tick())
	}
	return tea.Batch(cmds...)
}

func (p *progressPage) listen() tea.Cmd {
	news := p.news
	return func() tea.Msg { return <-news }
}

func (p *progressPage) update(m *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tickMsg:
		if p.running() && m.tick != nil {
			p.elapsed = m.now().Sub(p.began)
			return m.tick()
		}
	case progressMsg:
		p.now = install.Progress(msg)
		if !p.now.Done && (len(p.seen) == 0 || p.seen[len(p.seen)-1] != p.now.Text) {
			p.seen = append(p.seen, p.now.Text)
		}
		return p.listen()
	case installedMsg:
		p.elapsed = m.now().Sub(p.began)
		p.cancel()
		p.cancel, p.failed = nil, msg.err
		if msg.err == nil {
			return m.next()
		}
	case tea.KeyMsg:
		if p.running() {
			return nil
		}
		switch msg.String() {
		case "r":
			return p.enter(m)
		case "esc":
			return m.back()
		case "d":
			return m.goTo("Disk")
		}
	}
	return nil
}

func (p *progressPage) keys() string {
	if p.failed != nil {
		return "r try again   d another disk   Esc summary   F2 shell   F3 log   Ctrl-C leave"
	}
	return "F3 log   F2 shell   Ctrl-C stop"
}

func (*progressPage) help() string {
	return `The system is copied to the disk and configured. Until the last step the disk does not start: after a power failure, install again.`
}

func (p *progressPage) body(m *Model) string {
	width := m.width - 6
	var b strings.Builder
	title := "Installing " + m.request.Answers.Hostname + " on " + m.request.Disk.Path
	b.WriteString(m.look.title.Render(title) + fmt.Sprintf("   %s\n\n", minutes(p.elapsed)))
	for i, s := range p.seen {
		mark := m.look.good.Render("done ")
		switch {
		case i < len(p.seen)-1:
		case p.failed != nil:
			mark = m.look.bad.Render("FAIL ")
		default:
			mark = m.look.chosen.Render("  >  ")
		}
		b.WriteString(mark + s + "\n")
	}
	if p.failed != nil {
		text, hint := p.failed.Error(), ""
		var known *api.Error
		if errors.As(p.failed, &known) {
			text, hint = known.Message, known.Hint
		}
		b.WriteString("\n" + message(m.look.bad, upper(text)+".", hint, width) + "\n\nr tries again; a second try starts from the beginning and is safe.")
		return b.String()
	}
	if p.now.Fraction >= 0 && !p.now.Done {
		fmt.Fprintf(&b, "\n     %s %3.0f %%  %s", m.look.progressBar(p.now.Fraction, 40), 100*p.now.Fraction, written(p.now))
	}
	return b.String()
}

func written(p install.Progress) string {
	s := machine.Bytes(p.Bytes)
	if p.Total > 0 {
		s += " of " + machine.Bytes(p.Total)
	}
	return s
}

func minutes(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
