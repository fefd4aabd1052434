package tui

import (
	"context"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine/network"
)

// clusterPage asks for the node's name, and for the cluster to create or join.
type clusterPage struct {
	form
	node, what, cluster, token *field

	trying bool
	tried  string
	checks []network.Check
	wrong  error
}

func newClusterPage() *clusterPage {
	p := &clusterPage{
		node:    text("Node name", "a-z, 0-9 and '-': node1"),
		what:    choice("Cluster", "the first node creates a cluster; other nodes join it", "create a cluster", "join a cluster"),
		cluster: text("its name", "a-z, 0-9 and '-'"),
		token:   text("Join token", "on a member: basalt node token create"),
	}
	p.token.input.CharLimit = 9000
	p.cluster.input.SetValue("basalt")
	p.fields = []*field{p.node, p.what, p.cluster, p.token}
	p.arrange()
	return p
}

type reachedMsg struct {
	token  string
	checks []network.Check
}

func (*clusterPage) name() string { return "Cluster" }

func (p *clusterPage) enter(*Model) tea.Cmd { p.form.enter(); return nil }

func (p *clusterPage) arrange() {
	p.cluster.hidden, p.token.hidden = p.what.chosen == 1, p.what.chosen == 0
}

func (p *clusterPage) update(m *Model, msg tea.Msg) tea.Cmd {
	if r, ok := msg.(reachedMsg); ok {
		p.trying = false
		if r.token == p.token.value() {
			p.tried, p.checks = r.token, r.checks
		}
		return nil
	}
	if p.trying {
		return nil
	}
	switch p.form.update(msg) {
	case backward:
		return m.back()
	case changed:
		p.wrong, p.checks, p.tried = nil, nil, ""
		p.arrange()
	case submitted:
		return p.submit(m)
	}
	return nil
}

func (p *clusterPage) submit(m *Model) tea.Cmd {
	a := &m.request.Answers
	a.Hostname = p.node.value()
	if p.wrong = answers.CheckHostname(a.Hostname); p.wrong != nil {
		p.focusOn(p.node)
		return nil
	}
	if p.what.chosen == 0 {
		a.Cluster = answers.Cluster{Init: p.cluster.value()}
		if p.wrong = answers.CheckClusterName(a.Cluster.Init); p.wrong != nil {
			return nil
		}
		return m.next()
	}
	token := p.token.value()
	a.Cluster = answers.Cluster{Token: token}
	t, err := answers.ParseToken(token)
	if p.wrong = err; err != nil {
		return nil
	}
	if p.tried == token && !network.Failed(p.checks) {
		return m.next()
	}
	p.trying, p.checks = true, nil
	return func() tea.Msg { return reachedMsg{token, m.sys.Reach(context.Background(), t)} }
}

func (*clusterPage) keys() string {
	return "Enter next   Left/Right choose   Esc back   F1 help   F2 shell"
}

func (*clusterPage) help() string {
	return `The first node makes a new cluster. The operator's key is then on that node, in /var/lib/basalt/operator.key.

Every other node joins with a token: run "basalt node token create" on a member and paste its output. A token is valid for one node and one hour.

With three nodes the cluster survives the loss of one; more nodes add capacity.`
}

func (p *clusterPage) body(m *Model) string {
	width := m.width - 6
	var b strings.Builder
	b.WriteString(m.look.title.Render("The node and its cluster") + "\n\n" + p.view(m.look) + "\n\n")
	if p.what.chosen == 1 && p.token.value() != "" {
		if t, err := answers.ParseToken(p.token.value()); err == nil {
			b.WriteString("The token is for the cluster " + m.look.chosen.Render(strings.Map(printable, t.Cluster)) + " with " + strings.Map(printable, strings.Join(t.Peers, ", ")) + ".\n\n")
		}
	}
	switch {
	case p.trying:
		b.WriteString("Contacting the members of the cluster ...")
	case p.wrong != nil:
		b.WriteString(wrong(m.look, p.wrong, width))
	case p.checks != nil:
		if network.Failed(p.checks) {
			b.WriteString(m.look.bad.Render("The cluster cannot be joined.") + " Enter tries again.\n")
		} else {
			b.WriteString(m.look.good.Render("The cluster can be joined.") + " Enter continues.\n")
		}
		b.WriteString(m.look.checks(p.checks, width))
	}
	return b.String()
}
