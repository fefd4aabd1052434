package tui

import (
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/basalt-gpu/basalt/installer/machine/network"
)

// look defines the appearance of the screen: the sixteen colors that every console has,
// and characters that its font has.
type look struct {
	rule, full, empty string
	bar, title, dim   lipgloss.Style
	good, warn, bad   lipgloss.Style
	chosen            lipgloss.Style
}

func newLook(plain bool) look {
	s := lipgloss.NewStyle
	l := look{
		rule: "─", full: "█", empty: "░",
		bar:    s().Bold(true).Foreground(lipgloss.Color("15")).Background(lipgloss.Color("4")),
		title:  s().Bold(true).Foreground(lipgloss.Color("14")),
		dim:    s().Foreground(lipgloss.Color("8")),
		good:   s().Foreground(lipgloss.Color("10")),
		warn:   s().Foreground(lipgloss.Color("11")),
		bad:    s().Bold(true).Foreground(lipgloss.Color("9")),
		chosen: s().Bold(true),
	}
	if plain {
		l.rule, l.full, l.empty = "-", "#", "."
	}
	return l
}

// fit truncates a line to the width, keeping colors.
func fit(s string, width int) string { return ansi.Truncate(s, width, "~") }

// wrap wraps plain text at spaces; words that are too long are split.
func wrap(s string, width int) []string {
	var lines []string
	for _, paragraph := range strings.Split(s, "\n") {
		lines = append(lines, strings.Split(ansi.Wrap(paragraph, width, ""), "\n")...)
	}
	return lines
}

// message shows a sentence and what to do, in a style.
func message(style lipgloss.Style, text, hint string, width int) string {
	lines := wrap(text, width)
	for i := range lines {
		lines[i] = style.Render(lines[i])
	}
	if hint != "" {
		for _, h := range wrap(hint, width-3) {
			lines = append(lines, "   "+h)
		}
	}
	return strings.Join(lines, "\n")
}

// checks shows checks as lines.
func (l look) checks(list []network.Check, width int) string {
	var lines []string
	for _, c := range list {
		switch c.Outcome {
		case network.OK:
			lines = append(lines, l.good.Render("ok")+"  "+c.Text)
		case network.Warning:
			lines = append(lines, l.warn.Render("!!")+"  "+c.Text, "    "+l.dim.Render(fit(c.Hint, width-4)))
		case network.Failure:
			lines = append(lines, l.bad.Render("NO")+"  "+l.bad.Render(c.Text), "    "+c.Hint)
		}
	}
	return strings.Join(lines, "\n")
}

// progressBar draws a progress bar of a width.
func (l look) progressBar(fraction float64, width int) string {
	n := int(max(0, min(1, fraction)) * float64(width))
	return l.good.Render(strings.Repeat(l.full, n)) + l.dim.Render(strings.Repeat(l.empty, width-n))
}
