package tui

import (
	"fmt"
	"net"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/install"
)

// endPage shows what to do after the installation.
type endPage struct{ err error }

func (*endPage) name() string         { return "Installed" }
func (*endPage) enter(*Model) tea.Cmd { return nil }
func (*endPage) keys() string         { return "Enter restart   p power off   F2 shell   F3 log" }

func (*endPage) help() string {
	return `Remove the installation medium, or the computer may boot from it again. After the restart the node's screen shows its address and state.`
}

func (p *endPage) update(m *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case endFailedMsg:
		p.err = msg.err
	case tea.KeyMsg:
		switch msg.String() {
		case "enter", "r":
			return m.end(answers.Reboot)
		case "p":
			return m.end(answers.PowerOff)
		}
	}
	return nil
}

func (p *endPage) body(m *Model) string {
	var b strings.Builder
	a := m.request.Answers
	b.WriteString(m.look.title.Render("The node is installed") + "\n\n")
	progress, _ := m.pages[m.at-1].(*progressPage)
	if progress != nil {
		fmt.Fprintf(&b, "%s is on %s after %s minutes.\n\n", a.Hostname, m.request.Disk.Path, minutes(progress.elapsed))
	}
	b.WriteString("1. " + m.look.chosen.Render("Remove the installation medium.") + "\n2. Press Enter to restart.\n\n")
	url := "https://" + net.JoinHostPort(m.request.Main.Address.Addr().String(), install.APIPort)
	fmt.Fprintf(&b, "After the restart its screen shows its state, and its API answers at\n\n   %s\n\n", m.look.chosen.Render(url))
	if a.Cluster.Token == "" {
		b.WriteString("The operator's key is on the node, in /var/lib/basalt/operator.key.\nFor the next node: basalt node token create")
	} else {
		b.WriteString("It joins the cluster by itself.")
	}
	if m.leave != "" && p.err == nil {
		b.WriteString("\n\n" + m.look.good.Render(map[answers.After]string{answers.Reboot: "Restarting ...", answers.PowerOff: "Powering off ..."}[m.leave]))
	}
	if p.err != nil {
		b.WriteString("\n\n" + m.look.bad.Render("That failed: "+p.err.Error()) + "\nUse the power button; everything is written.")
	}
	return b.String()
}
