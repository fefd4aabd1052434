package tui

import (
	"strings"

	"github.com/charmbracelet/bubbles/cursor"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
)

// field is a field of a form: a text, or one of several choices.
type field struct {
	label    string
	hint     string
	input    textinput.Model
	choices  []string
	choosing bool // the left and right keys select a choice
	chosen   int
	hidden   bool // not shown and not focused
}

func text(label, hint string) *field {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = 512
	in.Width = 50
	in.Cursor.SetMode(cursor.CursorStatic) // blinking would cause traffic on a serial line
	return &field{label: label, hint: hint, input: in}
}

func secret(label, hint string) *field {
	f := text(label, hint)
	f.input.EchoMode, f.input.EchoCharacter = textinput.EchoPassword, '*'
	return f
}

func choice(label, hint string, choices ...string) *field {
	return &field{label: label, hint: hint, choices: choices, choosing: true}
}

func (f *field) value() string { return strings.TrimSpace(f.input.Value()) }

// form is a list of fields, one below the other.
type form struct {
	fields []*field
	focus  int
}

func (f *form) visible(i int) bool { return i >= 0 && i < len(f.fields) && !f.fields[i].hidden }

// enter restores the focus, or sets it to the first field.
func (f *form) enter() {
	if !f.visible(f.focus) {
		f.focus = 0
	}
	f.set(f.focus)
}

func (f *form) set(to int) {
	for i, fl := range f.fields {
		if i == to && !fl.choosing {
			fl.input.Focus()
		} else {
			fl.input.Blur()
		}
	}
	f.focus = to
}

// move moves the focus; it returns false if there is no field in that direction.
func (f *form) move(by int) bool {
	for i := f.focus + by; i >= 0 && i < len(f.fields); i += by {
		if f.visible(i) {
			f.set(i)
			return true
		}
	}
	return false
}

// focusOn focuses an invalid field.
func (f *form) focusOn(want *field) {
	for i, fl := range f.fields {
		if fl == want {
			f.set(i)
		}
	}
}

type formEvent int

const (
	nothing   formEvent = iota
	changed             // a value has changed
	submitted           // Enter on the last field
	backward            // Esc
)

func (f *form) update(msg tea.Msg) formEvent {
	key, ok := msg.(tea.KeyMsg)
	if !ok {
		return nothing
	}
	fl := f.fields[f.focus]
	switch key.String() {
	case "esc":
		return backward
	case "tab", "down":
		f.move(1)
		return nothing
	case "shift+tab", "up":
		f.move(-1)
		return nothing
	case "enter":
		if f.move(1) {
			return nothing
		}
		return submitted
	}
	if fl.choosing {
		return fl.choose(key.String())
	}
	before := fl.input.Value()
	fl.input, _ = fl.input.Update(key) // the command only blinks the cursor
	if fl.input.Value() != before {
		return changed
	}
	return nothing
}

func (f *field) choose(key string) formEvent {
	n := len(f.choices)
	if n == 0 {
		return nothing
	}
	switch key {
	case "right", " ", "l":
		f.chosen = (f.chosen + 1) % n
		return changed
	case "left", "h":
		f.chosen = (f.chosen + n - 1) % n
		return changed
	}
	return nothing
}

func (f *form) typing() bool { return !f.fields[f.focus].choosing }

func (f *form) view(l look) string {
	const labels = 16
	var lines []string
	for i, fl := range f.fields {
		if fl.hidden {
			continue
		}
		mark, label := "  ", fl.label+strings.Repeat(" ", max(0, labels-len(fl.label)))
		if i == f.focus {
			mark, label = l.chosen.Render("> "), l.chosen.Render(label)
		}
		value := fl.input.View()
		if fl.choosing {
			value = "(none)"
			if len(fl.choices) > 0 {
				value = fl.choices[fl.chosen]
			}
			if i == f.focus {
				value = l.chosen.Render("< ") + value + l.chosen.Render(" >")
			}
		}
		lines = append(lines, mark+label+value)
	}
	if hint := f.fields[f.focus].hint; hint != "" {
		lines = append(lines, "", "  "+strings.Repeat(" ", labels)+l.dim.Render(hint))
	} else {
		lines = append(lines, "", "")
	}
	return strings.Join(lines, "\n")
}
