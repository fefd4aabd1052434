package tui

import (
	"context"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/installer/answers"
)

// gpuPage asks whether NVIDIA's driver is to be installed. Only computers with an NVIDIA
// GPU have it.
type gpuPage struct {
	form
	what, from, place *field

	gpus   []hardware.GPU
	trying bool
	wrong  error
}

// The choices of gpuPage.what.
const (
	noDriver = iota
	acceptLicense
)

func newGPUPage(gpus []hardware.GPU) *gpuPage {
	p := &gpuPage{
		gpus:  gpus,
		what:  choice("NVIDIA's driver", "Left/Right choose; it is installed when the node starts", "do not install", "install, I accept NVIDIA's license"),
		from:  choice("its packages", "the node must reach the archive; a stick is read now", "from Debian's archive", "from a stick"),
		place: text("on the stick", "such as STICK:/nvidia or /dev/sdb1:/nvidia"),
	}
	p.fields = []*field{p.what, p.from, p.place}
	p.arrange()
	return p
}

// packagesMsg is the result of looking for packages on a stick.
type packagesMsg struct {
	place answers.Place
	err   error
}

func (*gpuPage) name() string { return "GPU" }

func (p *gpuPage) enter(*Model) tea.Cmd { p.form.enter(); return nil }

func (p *gpuPage) arrange() {
	p.from.hidden = p.what.chosen == noDriver
	p.place.hidden = p.from.hidden || p.from.chosen == 0
}

func (p *gpuPage) update(m *Model, msg tea.Msg) tea.Cmd {
	if found, ok := msg.(packagesMsg); ok {
		p.trying = false
		if p.wrong = found.err; found.err != nil {
			p.focusOn(p.place)
			return nil
		}
		m.request.Answers.GPUDriver = &answers.GPUDriver{From: &found.place}
		return m.next()
	}
	if p.trying {
		return nil
	}
	switch p.form.update(msg) {
	case backward:
		return m.back()
	case changed:
		p.wrong = nil
		p.arrange()
	case submitted:
		return p.submit(m)
	}
	return nil
}

func (p *gpuPage) submit(m *Model) tea.Cmd {
	a := &m.request.Answers
	a.GPUDriver = nil
	if p.what.chosen == noDriver {
		return m.next()
	}
	if p.from.chosen == 0 {
		a.GPUDriver = &answers.GPUDriver{}
		return m.next()
	}
	place, err := answers.ParsePlace(p.place.value())
	if p.wrong = err; err != nil {
		return nil
	}
	p.trying = true
	return func() tea.Msg { return packagesMsg{place, m.sys.CheckPackages(context.Background(), place)} }
}

func (*gpuPage) keys() string {
	return "Enter next   Left/Right choose   Esc back   F1 help   F2 shell"
}

func (*gpuPage) help() string {
	return `Virtual GPUs need NVIDIA's driver. It is not on this medium: its libraries are under NVIDIA's license, which you have to accept (https://www.nvidia.com/en-us/drivers/nvidia-license/).

When the node starts for the first time, it installs Debian's packages of the driver and builds the kernel modules, which takes some minutes; the node works meanwhile, and an alert for its cards shows the progress. The compiler and the kernel's headers are on this medium.

Without a network, put the packages into a directory of a USB stick (docs/gpu-nodes.md). To install the driver later: basalt-gpud driver install.`
}

func (p *gpuPage) body(m *Model) string {
	var b strings.Builder
	b.WriteString(m.look.title.Render("NVIDIA GPUs") + "\n\n")
	const shown = 4
	for _, g := range p.gpus[:min(len(p.gpus), shown)] {
		fmt.Fprintf(&b, "%s  device %04x\n", g.Address, g.Device)
	}
	if more := len(p.gpus) - shown; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	b.WriteString("\n" + strings.Join(wrap("Virtual GPUs need NVIDIA's driver, whose license you have to accept: https://www.nvidia.com/en-us/drivers/nvidia-license/", m.width-6), "\n") + "\n\n")
	b.WriteString(p.view(m.look) + "\n\n")
	switch {
	case p.trying:
		b.WriteString("Looking for the packages ...")
	case p.wrong != nil:
		b.WriteString(wrong(m.look, p.wrong, m.width-6))
	}
	return b.String()
}
