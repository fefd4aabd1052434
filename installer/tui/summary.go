package tui

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// summaryPage shows everything before anything is written.
type summaryPage struct{}

func (*summaryPage) name() string         { return "Summary" }
func (*summaryPage) enter(*Model) tea.Cmd { return nil }
func (*summaryPage) keys() string         { return "i install   Esc back and change   F1 help   Ctrl-C leave" }

func (*summaryPage) help() string {
	return `Nothing has been written so far. i erases the disk that is shown and installs the node; this takes a few minutes. Esc goes back to change something.`
}

func (*summaryPage) update(m *Model, msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok {
		switch key.String() {
		case "esc":
			return m.back()
		case "i", "I":
			return m.next()
		}
	}
	return nil
}

func (*summaryPage) body(m *Model) string {
	a, d := m.request.Answers, m.request.Disk
	var b strings.Builder
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-15s%s\n", label, value)
		}
	}
	b.WriteString(m.look.title.Render("Installation summary") + "\n\n")
	line("Erase", m.look.bad.Render(fmt.Sprintf("%s  %s  serial %s", d.Path, machine.Bytes(d.SizeBytes), orDash(d.Serial))))
	line("  model", d.Model)
	what := "it is empty"
	if len(d.Contents) > 0 {
		what = "with " + strings.Join(d.Contents, "; ")
	}
	for _, w := range wrap(what, m.width-22) {
		b.WriteString(strings.Repeat(" ", 15) + w + "\n")
	}
	erased := d.Path
	if s := m.request.Mirror; s != nil {
		line("and erase", m.look.bad.Render(fmt.Sprintf("%s  %s  serial %s", s.Path, machine.Bytes(s.SizeBytes), orDash(s.Serial)))+", its mirror")
		erased += " and " + s.Path
	}
	if _, reason := install.Layout(m.request.Smallest(), a.FileSystems); reason == "" {
		line("File systems", "system, state, logs, images and volumes")
	} else {
		line("File systems", "one: the disk is smaller than "+machine.Bytes(install.MinSeparate))
	}
	line("Node", a.Hostname)
	line("Network", pathLine(a.Network.Path, m.request.Main.Address.String()))
	if g := m.request.Main.Gateway; g.IsValid() {
		line("  gateway", g.String())
	}
	line("  DNS", strings.Trim(fmt.Sprint(m.request.Main.DNS), "[]"))
	if a.Network.External {
		line("External", "shares the card, by bridge "+hostnet.SharedBridge)
	}
	if s := m.request.Second; s != nil && a.Network.Second != nil {
		line("Second path", pathLine(*a.Network.Second, s.Address.String()))
	}
	if a.Cluster.Token != "" {
		t, _ := answers.ParseToken(a.Cluster.Token) // it was checked on its page
		line("Cluster", "join "+strings.Map(printable, t.Cluster))
	} else {
		line("Cluster", "create "+a.Cluster.Init)
	}
	password := "none: SSH keys only"
	if a.Root.Password != "" {
		password = "as typed"
	}
	line("Root password", password)
	line("SSH keys", fmt.Sprint(len(a.Root.SSHKeys)))
	if g := a.GPUDriver; g != nil {
		line("GPU driver", "NVIDIA's, license accepted")
		from := "from Debian's archive"
		if g.From != nil {
			from = "on " + g.From.String()
		}
		line("  packages", from)
	}
	b.WriteString("\nPress " + m.look.chosen.Render("i") + " to erase " + m.look.bad.Render(erased) + " and install.")
	return b.String()
}

func pathLine(p answers.Path, address string) string {
	how := "static"
	if p.DHCP {
		how = "by DHCP"
	}
	return fmt.Sprintf("%s  %s %s", p.Interface, address, how)
}
