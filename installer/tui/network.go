package tui

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"
)

// networkPage asks for the node's address and tries it at once.
type networkPage struct {
	form
	card, how, address, gateway, dns *field
	second, secondHow, secondAddress *field
	external                         *field

	nics   []machine.NIC
	others []machine.NIC // for the second card: all except the first
	err    error
	trying bool
	tried  string // the values that were checked
	checks []network.Check
	wrong  error
}

func newNetworkPage() *networkPage {
	p := &networkPage{
		card:          choice("Card", "left and right choose"),
		how:           choice("Method", "a node should always have the same address", "DHCP", "static"),
		address:       text("Address", "with its prefix length: 192.0.2.11/24"),
		gateway:       text("Gateway", "192.0.2.1; empty: only the node's own network is reached"),
		dns:           text("DNS servers", "up to three addresses, spaces between; may be empty"),
		second:        choice("Second card", "another path between the nodes, over another switch"),
		secondHow:     choice("its method", "", "DHCP", "static"),
		secondAddress: text("its address", "in a network of its own: 198.51.100.11/24"),
		external:      choice("External", "external networks of instances, for floating IPs", "not on this card", "on this card too, by bridge "+hostnet.SharedBridge),
	}
	p.fields = []*field{p.card, p.how, p.address, p.gateway, p.dns, p.second, p.secondHow, p.secondAddress, p.external}
	p.arrange()
	return p
}

type nicsMsg struct {
	nics []machine.NIC
	err  error
}

type triedMsg struct {
	of     string
	main   network.Up
	second *network.Up
	checks []network.Check
}

func (*networkPage) name() string { return "Network" }

func (p *networkPage) enter(m *Model) tea.Cmd {
	p.form.enter()
	return func() tea.Msg {
		nics, err := m.sys.NICs(context.Background())
		return nicsMsg{nics, err}
	}
}

// arrange updates which fields are shown, and the second cards to choose from, which
// exclude the first.
func (p *networkPage) arrange() {
	was := p.others
	p.others, p.second.choices = nil, []string{"none"}
	for i, n := range p.nics {
		if i != p.card.chosen {
			p.others = append(p.others, n)
			p.second.choices = append(p.second.choices, line(n))
		}
	}
	p.second.chosen = keep(was, p.others, p.second.chosen-1, -1) + 1
	byHand := p.how.chosen == 1
	for _, f := range []*field{p.address, p.gateway, p.dns} {
		f.hidden = !byHand
	}
	p.second.hidden = len(p.others) == 0
	p.secondHow.hidden = p.second.hidden || p.second.chosen == 0
	p.secondAddress.hidden = p.secondHow.hidden || p.secondHow.chosen == 0
}

func (p *networkPage) found(msg nicsMsg) {
	was := p.nics
	p.nics, p.err = msg.nics, msg.err
	if was == nil && len(p.nics) == 1 { // there is no other card for external networks
		p.external.chosen = 1
	}
	p.card.choices = []string{}
	for _, n := range p.nics {
		p.card.choices = append(p.card.choices, line(n))
	}
	// The order follows the links, so the chosen card is found again by its address.
	p.card.chosen = keep(was, p.nics, p.card.chosen, 0)
	p.arrange()
}

// line returns a card's line among the choices.
func line(n machine.NIC) string {
	return fmt.Sprintf("%-8s %s  %s  %s", n.Name, n.MAC, n.Speed(), n.Driver)
}

func keep(was, now []machine.NIC, chosen, otherwise int) int {
	if chosen >= 0 && chosen < len(was) {
		for i, n := range now {
			if n.MAC == was[chosen].MAC {
				return i
			}
		}
	}
	return otherwise
}

func (p *networkPage) update(m *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case nicsMsg:
		p.found(msg)
		return nil
	case triedMsg:
		p.trying = false
		if msg.of == p.values() {
			p.tried, p.checks = msg.of, msg.checks
			m.request.Main, m.request.Second = msg.main, msg.second
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

// values returns the values of all relevant fields, to detect changes after a check.
func (p *networkPage) values() string {
	var b strings.Builder
	for _, f := range p.fields {
		if !f.hidden {
			fmt.Fprintf(&b, "%s=%s|%d\n", f.label, f.input.Value(), f.chosen)
		}
	}
	return b.String()
}

func (p *networkPage) submit(m *Model) tea.Cmd {
	if len(p.nics) == 0 {
		p.wrong = errors.New("there is no network card")
		return nil
	}
	w, at, err := p.read()
	if err != nil {
		p.wrong = err
		p.focusOn(at)
		return nil
	}
	if p.tried == p.values() && !network.Failed(p.checks) {
		m.request.Answers.Network = w
		return m.next()
	}
	p.trying, p.checks, p.wrong = true, nil, nil
	of, nic := p.values(), p.nics[p.card.chosen]
	var other machine.NIC
	if w.Second != nil {
		other = p.others[p.second.chosen-1]
	}
	return func() tea.Msg {
		ctx := context.Background()
		up, checks := m.sys.Try(ctx, "main", nic, w.Path, w.Gateway, w.DNS)
		t := triedMsg{of: of, main: up, checks: checks}
		if w.Second != nil {
			up, checks := m.sys.Try(ctx, "second", other, *w.Second, netip.Addr{}, nil)
			t.second, t.checks = &up, append(t.checks, checks...)
		}
		return t
	}
}

// read reads the fields; at is the invalid one.
func (p *networkPage) read() (w answers.Network, at *field, err error) {
	nic := p.nics[p.card.chosen]
	w.Path = answers.Path{Interface: nic.Name, MAC: nic.MAC, DHCP: p.how.chosen == 0}
	w.External = p.external.chosen == 1
	if !w.DHCP {
		if w.Address, err = answers.ParseAddress(p.address.value()); err != nil {
			return w, p.address, err
		}
		if g := p.gateway.value(); g != "" {
			if w.Gateway, err = netip.ParseAddr(g); err != nil {
				return w, p.gateway, &answers.Bad{Reason: fmt.Sprintf("%q is not an address", g), Instead: "write an address such as 192.0.2.1"}
			}
			if err = answers.CheckGateway(w.Path, w.Gateway); err != nil {
				return w, p.gateway, err
			}
		}
		for _, s := range strings.FieldsFunc(p.dns.value(), func(r rune) bool { return r == ' ' || r == ',' }) {
			a, err := netip.ParseAddr(s)
			if err != nil || len(w.DNS) == 3 {
				return w, p.dns, &answers.Bad{Reason: fmt.Sprintf("%q is not an address, or one too many", s), Instead: "write up to three addresses"}
			}
			w.DNS = append(w.DNS, a)
		}
	}
	if p.second.hidden || p.second.chosen == 0 {
		return w, nil, nil
	}
	other := p.others[p.second.chosen-1]
	s := answers.Path{Interface: other.Name, MAC: other.MAC, DHCP: p.secondHow.chosen == 0}
	if !s.DHCP {
		if s.Address, err = answers.ParseAddress(p.secondAddress.value()); err != nil {
			return w, p.secondAddress, err
		}
	}
	w.Second = &s
	return w, p.second, answers.CheckSecond(w.Path, s)
}

func (*networkPage) keys() string {
	return "Enter next, on the last field: check   Left/Right choose   Esc back   F1 help"
}

func (*networkPage) help() string {
	return `The address is where people and programs reach this node's API, and where the other nodes reach it. With DHCP, reserve the address in the DHCP server: the cluster knows the node by it.

Enter on the last field sets the address on the card and checks the link, whether another machine has the address, the gateway and DNS. Enter again continues.

External networks are those that instances reach through floating IPs and routers. They can share this card with the node, through a bridge. With a card of their own for them, or a VLAN, choose "not on this card" and declare it later in /etc/basalt/network.yaml.

A second card, on another switch, lets the other nodes distinguish a failed node from a failed cable.`
}

func (p *networkPage) body(m *Model) string {
	width := m.width - 6
	var b strings.Builder
	b.WriteString(m.look.title.Render("Node network") + "\n\n")
	switch {
	case p.err != nil:
		b.WriteString(message(m.look.bad, "The cards could not be listed: "+p.err.Error(), "Esc and Enter refresh", width))
		return b.String()
	case p.nics != nil && len(p.nics) == 0:
		b.WriteString(message(m.look.bad, "The kernel has found no wired network card.", "a node needs one; Esc and Enter refresh", width))
		return b.String()
	}
	b.WriteString(p.view(m.look) + "\n\n")
	switch {
	case p.trying:
		b.WriteString("Checking link, address, gateway and DNS ...")
	case p.wrong != nil:
		b.WriteString(wrong(m.look, p.wrong, width))
	case p.checks != nil:
		switch network.Worst(p.checks) {
		case network.Failure:
			b.WriteString(m.look.bad.Render("The network does not work.") + " Change what is wrong; Enter on the last field checks again.\n")
		case network.Warning:
			b.WriteString(m.look.good.Render("The network works,") + " except for what is marked !!. Enter continues.\n")
		default:
			b.WriteString(m.look.good.Render("The network works.") + " Enter continues.\n")
		}
		b.WriteString(m.look.checks(p.checks, width))
	}
	return b.String()
}

// wrong shows what is wrong with an input and what to write instead.
func wrong(l look, err error, width int) string {
	var b *answers.Bad
	if errors.As(err, &b) {
		return message(l.bad, b.Reason, b.Instead, width)
	}
	var known *api.Error
	if errors.As(err, &known) {
		return message(l.bad, known.Message, known.Hint, width)
	}
	return message(l.bad, err.Error(), "", width)
}
