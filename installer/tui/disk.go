package tui

import (
	"context"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// diskPage chooses a disk and asks for its serial as a confirmation.
type diskPage struct {
	mirror  bool // it chooses the second disk, or none
	disks   []machine.Disk
	err     error
	looking bool
	cursor  int
	confirm *field // of the selected disk, once it was chosen
	asking  bool
	wrong   string
}

func newDiskPage() *diskPage   { return &diskPage{confirm: text("", "")} }
func newMirrorPage() *diskPage { return &diskPage{mirror: true, confirm: text("", "")} }

type disksMsg struct {
	disks []machine.Disk
	err   error
}

func (p *diskPage) name() string {
	if p.mirror {
		return "Mirror"
	}
	return "Disk"
}

func (p *diskPage) enter(m *Model) tea.Cmd { return p.scan(m) }

func (p *diskPage) scan(m *Model) tea.Cmd {
	p.looking = true
	return func() tea.Msg {
		disks, err := m.sys.Disks(context.Background())
		return disksMsg{disks, err}
	}
}

func (p *diskPage) typing() bool { return p.asking }

func (p *diskPage) update(m *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case disksMsg:
		if p.mirror {
			msg.disks = m.candidates(msg.disks)
		}
		p.found(msg)
	case tea.KeyMsg:
		if p.asking {
			return p.confirming(m, msg)
		}
		switch msg.String() {
		case "esc":
			return m.back()
		case "up", "k", "shift+tab":
			p.cursor = max(0, p.cursor-1)
		case "down", "j", "tab":
			p.cursor = max(0, min(p.cursor+1, len(p.disks)-1))
		case "r":
			return p.scan(m)
		case "n":
			if p.mirror {
				m.request.Mirror = nil
				return m.next()
			}
		case "enter":
			p.choose()
		}
	}
	return nil
}

// found updates the disks; the chosen one stays chosen if it still exists.
func (p *diskPage) found(msg disksMsg) {
	var was machine.Disk
	if p.cursor < len(p.disks) {
		was = p.disks[p.cursor]
	}
	p.disks, p.err, p.looking = msg.disks, msg.err, false
	p.cursor = -1
	for i, d := range p.disks {
		if d.Path == was.Path && d.Serial == was.Serial && d.Refusal == nil {
			p.cursor = i
			return
		}
	}
	p.asking = false
	p.confirm.input.SetValue("")
	for i, d := range p.disks {
		if d.Refusal == nil {
			p.cursor = i
			return
		}
	}
	p.cursor = 0
}

func (p *diskPage) choose() {
	p.wrong = ""
	if p.cursor >= len(p.disks) {
		return
	}
	if r := p.disks[p.cursor].Refusal; r != nil {
		p.wrong = "Choose another disk, or free this one and press r."
		return
	}
	p.asking = true
	p.confirm.input.Focus()
}

func (p *diskPage) confirming(m *Model, key tea.KeyMsg) tea.Cmd {
	d := p.disks[p.cursor]
	switch key.String() {
	case "esc":
		p.asking, p.wrong = false, ""
		return nil
	case "enter":
		if typed := p.confirm.value(); typed != d.Confirm() {
			p.wrong = fmt.Sprintf("That is not %s. Nothing is erased.", d.Confirm())
			return nil
		}
		if p.mirror {
			m.request.Mirror = &d
			return m.next()
		}
		if d.Path != m.request.Disk.Path {
			m.request.Mirror = nil
		}
		m.request.Disk = d
		m.request.Answers.Disk = answers.Disk{Serial: d.Serial}
		return m.next()
	}
	p.wrong = ""
	p.confirm.input, _ = p.confirm.input.Update(key)
	return nil
}

func (p *diskPage) keys() string {
	if p.asking {
		return "Enter continue   Esc another disk   F1 help   Ctrl-C leave"
	}
	if p.mirror {
		return "n no mirror   Up/Down move   Enter select   r refresh   Esc back"
	}
	return "Up/Down move   Enter select   r refresh   Esc back   F1 help   F2 shell"
}

func (p *diskPage) help() string {
	if p.mirror {
		return `A second disk that holds the same as the first: the node goes on, and starts, when either of them fails. It is erased whole. Of disks of different sizes the smaller one counts.

Removable disks cannot be chosen. n installs on the first disk alone.`
	}
	return `The whole disk is erased. It stores the system and, as the pool "local", the disks of virtual machines. It needs 16 GiB; an SSD is best.

A disk in use (mounted, swap, part of LVM, RAID or ZFS) cannot be chosen; the line below it says why and how to free it in a shell (F2).

You confirm by typing the serial number: compare it with the label on the disk.`
}

func (p *diskPage) body(m *Model) string {
	width := m.width - 6
	var b strings.Builder
	title := "Select the disk to install on"
	if p.mirror {
		title = "Which disk shall mirror " + m.request.Disk.Path + "? n: none"
	}
	b.WriteString(m.look.title.Render(title) + "\n\n")
	switch {
	case p.err != nil:
		b.WriteString(message(m.look.bad, "The disks could not be listed: "+p.err.Error(), "press r to refresh, F2 for a shell", width))
		return b.String()
	case p.disks == nil && p.looking:
		b.WriteString("Listing disks ...")
		return b.String()
	case p.mirror && len(p.disks) == 0:
		b.WriteString("There is no second disk. Press n.")
		return b.String()
	case len(p.disks) == 0:
		b.WriteString(message(m.look.bad, "The kernel has found no disk.", "check cables and the controller's mode (no RAID) in the firmware; then press r", width))
		return b.String()
	}
	p.list(m, &b)
	d := p.disks[p.cursor]
	b.WriteString("\n")
	switch {
	case d.Refusal != nil:
		b.WriteString(message(m.look.warn, "Cannot be chosen: "+d.Refusal.Reason+".", d.Refusal.Hint, width))
	case len(d.Contents) == 0:
		b.WriteString("It is empty.")
	default:
		b.WriteString(m.look.warn.Render("This will be erased:"))
		if d.Node {
			b.WriteString(m.look.bad.Render("  a finished Basalt node, with the disks of its machines"))
		}
		for i, c := range d.Contents {
			if i == 4 && len(d.Contents) > 5 {
				fmt.Fprintf(&b, "\n   and %d more", len(d.Contents)-i)
				break
			}
			b.WriteString("\n   " + fit(c, width-3))
		}
	}
	if p.asking {
		fmt.Fprintf(&b, "\n\nType %s to have it erased:\n> %s", m.look.chosen.Render(d.Confirm()), p.confirm.input.View())
	}
	if p.wrong != "" {
		b.WriteString("\n" + m.look.bad.Render(p.wrong))
	}
	return b.String()
}

// candidates returns the disks that can mirror the chosen one.
func (m *Model) candidates(disks []machine.Disk) (all []machine.Disk) {
	for _, d := range disks {
		if d.Path == m.request.Disk.Path {
			continue
		}
		if d.Removable && d.Refusal == nil {
			d.Refusal = &machine.Refusal{Reason: "a removable disk cannot mirror another", Hint: "choose a disk that is built in, or press n"}
		}
		all = append(all, d)
	}
	return all
}

// list shows at most seven disks around the cursor.
func (p *diskPage) list(m *Model, b *strings.Builder) {
	const most = 7
	first := max(0, min(p.cursor-most/2, len(p.disks)-most))
	fmt.Fprintf(b, "%s\n", m.look.dim.Render(fmt.Sprintf("  %-13s %9s  %-6s %-25s %s", "disk", "size", "", "model", "serial")))
	for i := first; i < min(first+most, len(p.disks)); i++ {
		d := p.disks[i]
		kind := d.Transport
		if kind == "" && d.SSD {
			kind = "ssd"
		}
		line := fmt.Sprintf("%-13s %9s  %-6s %-25s %s", fit(d.Path, 13), machine.Bytes(d.SizeBytes), fit(kind, 6), fit(orDash(d.Model), 25), orDash(d.Serial))
		switch {
		case i == p.cursor && d.Refusal == nil:
			line = m.look.chosen.Render("> " + line)
		case i == p.cursor:
			line = "> " + line
		case d.Refusal != nil:
			line = m.look.dim.Render("  " + line)
		default:
			line = "  " + line
		}
		b.WriteString(line + "\n")
	}
	if n := len(p.disks); n > most {
		b.WriteString(m.look.dim.Render(fmt.Sprintf("  %d of %d disks", most, n)) + "\n")
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
