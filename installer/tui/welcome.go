package tui

import tea "github.com/charmbracelet/bubbletea"

type welcomePage struct{}

func (*welcomePage) name() string           { return "Welcome" }
func (*welcomePage) enter(m *Model) tea.Cmd { return nil }
func (*welcomePage) keys() string           { return "Enter start   F1 help   F2 shell   Ctrl-C leave" }

func (*welcomePage) update(m *Model, msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok && key.String() == "enter" {
		return m.next()
	}
	return nil
}

func (*welcomePage) body(m *Model) string {
	return "\n" + m.look.title.Render(Banner) + `

A cloud of GPU machines, on computers of your own.

This makes the computer a Basalt node. You will be asked for

   a disk      which is erased whole
   a network   which is tried at once
   a cluster   a new one, or one that this node joins
   an access   the root password, SSH keys

in about two minutes. Nothing is written before you have seen a summary.`
}

func (*welcomePage) help() string {
	return `The installer asks a few questions and then copies the system from this medium to the disk. Nothing is fetched from a network.

To install many nodes without questions, put an answer file on a second medium with the label BASALT-ANS, or name it on the kernel's command line: basalt.answers=...`
}

// Banner is Basalt's banner, which shows columns like those of the stone.
const Banner = ` _                   _ _
| |__  __ _ ___ __ _| | |_
| '_ \/ _` + "`" + ` (_-</ _` + "`" + ` | |  _|
|_.__/\__,_/__/\__,_|_|\__|`
