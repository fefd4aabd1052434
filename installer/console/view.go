// Package console is the status screen of an installed node: its state, how to reach
// it, and what to do next. It is updated every few seconds, and shows what is unknown
// instead of failing, since people in front of the machine have nothing else.
package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/basalt-gpu/basalt/api"
)

// State is everything that the screen shows.
type State struct {
	Setup     *api.Setup // nil: basaltd does not answer
	Err       string     // why basaltd does not answer
	Host      string
	Addresses []string // of this machine, with prefix lengths
	Key       bool     // whether the operator's key is on this node
	Up        time.Duration
	At        time.Time
	Version   string // of this program
}

// Size is the size of the screen.
type Size struct{ Width, Height int }

// OperatorKey is the path of the operator's key on the node that created the cluster.
const OperatorKey = "/var/lib/basalt/operator.key"

const banner = ` _                   _ _
| |__  __ _ ___ __ _| | |_
| '_ \/ _` + "`" + ` (_-</ _` + "`" + ` | |  _|
|_.__/\__,_/__/\__,_|_|\__|`

type look struct {
	title, good, warn, bad, dim, bold lipgloss.Style
	rule                              string
}

func newLook(plain bool) look {
	s := lipgloss.NewStyle
	l := look{
		title: s().Bold(true).Foreground(lipgloss.Color("14")), good: s().Foreground(lipgloss.Color("10")), warn: s().Foreground(lipgloss.Color("11")),
		bad: s().Bold(true).Foreground(lipgloss.Color("9")), dim: s().Foreground(lipgloss.Color("8")), bold: s().Bold(true), rule: "─",
	}
	if plain {
		l.rule = "-"
	}
	return l
}

// View returns the screen; it is a pure function of the observation.
func View(s State, size Size, l look) string {
	var b []string
	for _, line := range strings.Split(banner, "\n") {
		b = append(b, l.title.Render(line))
	}
	b = append(append(b, ""), lines(s, l, size.Width-4)...)
	return frame(b, size, l, "Alt-F2 sign in   l log   r restart   p switch off", clock(s))
}

// clock has no seconds, so that an unchanged screen is not redrawn.
func clock(s State) string { return s.At.UTC().Format("15:04 UTC") }

// lines returns the node's state, and what to do next.
func lines(s State, l look, width int) (b []string) {
	row := func(label, value string) {
		if value != "" {
			b = append(b, fmt.Sprintf("%-11s%s", label, value))
		}
	}
	name, version := s.Host, s.Version
	if s.Setup != nil {
		name, version = clean(s.Setup.Node), clean(s.Setup.Version)
	}
	row("Node", l.bold.Render(name)+l.dim.Render("   "+version+", up "+since(s.Up)))
	row("State", state(s, l))
	row("API", strings.Join(urls(s), "  "))
	row("Addresses", strings.Join(s.Addresses, "  "))
	if s.Setup != nil && s.Setup.Cluster != "" {
		row("Cluster", clean(s.Setup.Cluster)+members(*s.Setup, l))
		if s.Setup.Leader != "" {
			row("Leader", clean(s.Setup.Leader))
		}
	}
	b = append(b, "")
	for _, n := range next(s) {
		b = append(b, wrap(n, width)...)
	}
	return b
}

// frame fills the whole screen, so that no earlier content remains.
func frame(body []string, size Size, l look, keys, right string) string {
	room := size.Height - 3
	if len(body) > room {
		body = body[:room]
	}
	for len(body) < room {
		body = append(body, "")
	}
	for i := range body {
		body[i] = ansi.Truncate("  "+body[i], size.Width-1, "~")
	}
	gap := max(1, size.Width-2-len(keys)-len(right))
	return "\n" + strings.Join(body, "\n") + "\n" + l.dim.Render(strings.Repeat(l.rule, size.Width-1)) + "\n" +
		ansi.Truncate(" "+keys+strings.Repeat(" ", gap)+right, size.Width-1, "~")
}

// state returns the node's state in a word, and its reason.
func state(s State, l look) string {
	switch {
	case s.Setup == nil && s.Up < 2*time.Minute:
		return l.warn.Render("starting: basaltd does not answer yet")
	case s.Setup == nil:
		return l.bad.Render("basaltd does not answer") + l.dim.Render("  "+clean(s.Err))
	}
	why := clean(s.Setup.Message)
	if why != "" {
		why = ": " + why
	}
	switch s.Setup.State {
	case api.SetupMember:
		if !s.Setup.Quorum {
			return l.bad.Render("cut off: this node cannot reach most of the cluster") + why
		}
		return l.good.Render("in order") + why
	case api.SetupJoining:
		return l.warn.Render("joining a cluster") + why
	case api.SetupLeft:
		return l.warn.Render("no longer a member") + why
	case api.SetupDamaged:
		return l.bad.Render("its copy of the cluster's state is lost or damaged") + why
	case api.SetupUnconfigured:
		return l.warn.Render("not configured") + why
	}
	return clean(string(s.Setup.State)) + why
}

func members(u api.Setup, l look) string {
	if u.Members == 0 {
		return ""
	}
	text := fmt.Sprintf("   %d of %d nodes alive", u.Alive, u.Members)
	if u.Alive < u.Members {
		return l.warn.Render(text)
	}
	return text
}

// urls returns the URLs of the API, with the node's own addresses in place of
// wildcards.
func urls(s State) (all []string) {
	if s.Setup == nil {
		return nil
	}
	for _, a := range s.Setup.Addresses {
		if a = clean(a); !strings.Contains(a, "://") {
			a = "https://" + a
		}
		all = append(all, a)
	}
	return all[:min(len(all), 3)]
}

// next returns instructions in sentences.
func next(s State) []string {
	if s.Setup == nil {
		if s.Up < 2*time.Minute {
			return nil
		}
		return []string{"Sign in (Alt-F2) and look: systemctl status basaltd; journalctl -u basaltd. It is started again by itself; running machines stay up meanwhile."}
	}
	switch s.Setup.State {
	case api.SetupUnconfigured:
		return []string{
			"Make this the first node of a cluster:    basalt cluster init",
			"Or join one; on a member:                 basalt node token create",
			"and here, with what that prints:          basalt node join TOKEN",
			"Sign in with Alt-F2.",
		}
	case api.SetupJoining:
		return []string{"If this does not end: is a member reachable (" + clean(strings.Join(s.Setup.PeerAddresses, ", ")) + " is this node), and is the token less than an hour old and unused? A new one: basalt node token create on a member; basalt node join TOKEN here."}
	case api.SetupLeft:
		return []string{"To use it again: basalt node join TOKEN, with a token of any cluster. Sign in with Alt-F2."}
	case api.SetupDamaged:
		return []string{"Instances on this node keep running. To rebuild the copy from the other nodes: basalt node rebuild. Sign in with Alt-F2."}
	case api.SetupMember:
		return member(s)
	}
	return nil
}

func member(s State) []string {
	if !s.Setup.Quorum {
		return []string{"Check the network and the other nodes. It comes back by itself when most of them are reached. If they are lost for good: basalt cluster recover, on one node only."}
	}
	var lines []string
	if u := urls(s); len(u) > 0 {
		lines = append(lines, "From other computers: basalt --server "+u[0]+" --token KEY")
	}
	key := s.Setup.OperatorKey
	if key == "" && s.Key {
		key = OperatorKey
	}
	if key != "" {
		lines = append(lines, "Operator's key:       "+clean(key)+" (sign in with Alt-F2)")
	}
	more := "Add a node:           basalt node token create"
	if s.Setup.Members < 3 {
		more += "   (three survive a loss)"
	}
	return append(lines, more, "What runs here:       basalt node list; basalt instance list")
}

// clean removes control characters from untrusted text.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	return ansi.Truncate(s, 200, "~")
}

func wrap(s string, width int) []string { return strings.Split(ansi.Wrap(s, width, ""), "\n") }

func since(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// Text returns the node's state without a screen around it.
func Text(s State) string {
	return strings.Join(lines(s, newLook(true), 100), "\n")
}
