package tui

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/installer/answers"
)

// accessPage asks who may sign in.
type accessPage struct {
	form
	password, again, key *field
	keysGiven            []string
	wrong                error
}

func newAccessPage() *accessPage {
	p := &accessPage{
		password: secret("Root password", "for the screen and the serial line; empty: only SSH keys"),
		again:    secret("once more", ""),
		key:      text("SSH key", "paste the line of a .pub file; Enter on an empty line continues"),
	}
	p.key.input.CharLimit = 16 << 10
	p.fields = []*field{p.password, p.again, p.key}
	return p
}

func (*accessPage) name() string           { return "Access" }
func (p *accessPage) enter(*Model) tea.Cmd { p.form.enter(); return nil }

func (p *accessPage) update(m *Model, msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok && key.String() == "ctrl+u" && p.fields[p.focus] == p.key && p.key.value() == "" {
		p.keysGiven = p.keysGiven[:max(0, len(p.keysGiven)-1)]
		return nil
	}
	switch p.form.update(msg) {
	case backward:
		return m.back()
	case changed:
		p.wrong = nil
	case submitted:
		return p.submit(m)
	}
	return nil
}

func (p *accessPage) submit(m *Model) tea.Cmd {
	if k := p.key.value(); k != "" {
		if p.wrong = answers.CheckSSHKey(k); p.wrong == nil {
			p.keysGiven = append(p.keysGiven, k)
			p.key.input.SetValue("")
		}
		return nil
	}
	w, at, err := p.read()
	if p.wrong = err; err != nil {
		p.focusOn(at)
		return nil
	}
	m.request.Answers.Root = w
	return m.next()
}

func (p *accessPage) read() (answers.Root, *field, error) {
	w := answers.Root{Password: p.password.input.Value(), SSHKeys: p.keysGiven}
	switch {
	case w.Password == "" && len(w.SSHKeys) == 0:
		return w, p.password, errors.New("nobody could sign in: give a password or an SSH key")
	case w.Password != p.again.input.Value():
		return w, p.again, errors.New("the two passwords are not the same: type both again")
	case w.Password != "":
		return w, p.password, answers.CheckPassword(w.Password)
	}
	return w, nil, nil
}

func (*accessPage) keys() string { return "Enter next   Esc back   F1 help   F2 shell   Ctrl-C leave" }

func (*accessPage) help() string {
	return `The password is for logging in as root on the node's screen (Alt-F2) and its serial line. SSH accepts keys only.

A key is the one line of a .pub file on your own computer, such as ~/.ssh/id_ed25519.pub. On a serial line you can paste it; on a screen you may leave it out, sign in with the password later, and add it to /root/.ssh/authorized_keys.`
}

func (p *accessPage) body(m *Model) string {
	width := m.width - 6
	var b strings.Builder
	b.WriteString(m.look.title.Render("Root access") + "\n\n" + p.view(m.look) + "\n\n")
	if s := p.password.input.Value(); s != "" {
		word, hint := strength(s)
		style := m.look.warn
		if hint == "" {
			style = m.look.good
		}
		b.WriteString("Password: " + style.Render(word) + "  " + m.look.dim.Render(hint))
	}
	b.WriteString("\n")
	for i, k := range p.keysGiven {
		f := strings.Fields(k)
		name := ""
		if len(f) > 2 {
			name = strings.Map(printable, strings.Join(f[2:], " "))
		}
		fmt.Fprintf(&b, "Key %d: %s ...%s %s\n", i+1, f[0], f[1][max(0, len(f[1])-12):], name)
	}
	if len(p.keysGiven) > 0 {
		b.WriteString(m.look.dim.Render("Ctrl-U removes the last key.") + "\n")
	}
	if p.wrong != nil {
		b.WriteString("\n" + wrong(m.look, p.wrong, width))
	}
	return b.String()
}

// strength estimates how many guesses a password withstands, from its length and its
// kinds of characters. Words in it make it weaker than the estimate; that is why the
// hint asks for more of them.
func strength(s string) (word, hint string) {
	kinds := map[string]int{}
	different := map[rune]bool{}
	for _, r := range s {
		different[r] = true
		switch {
		case unicode.IsLower(r):
			kinds["lower"] = 26
		case unicode.IsUpper(r):
			kinds["upper"] = 26
		case unicode.IsDigit(r):
			kinds["digit"] = 10
		default:
			kinds["other"] = 32
		}
	}
	alphabet := 0
	for _, n := range kinds {
		alphabet += n
	}
	bits := 0.0
	for n := alphabet; n > 1; n /= 2 {
		bits++
	}
	bits *= float64(min(len(s), 2*len(different)))
	switch {
	case len(s) < answers.MinPassword:
		return "too short", fmt.Sprintf("at least %d characters", answers.MinPassword)
	case bits < 50:
		return "weak", "another word or two would make it strong"
	case bits < 70:
		return "fair", "another word would make it strong"
	}
	return "strong", ""
}
