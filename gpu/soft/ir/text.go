package ir

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText writes a program in readable form: its blocks with one instruction per
// line, and the line of PTX of each.
func (p *Program) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "kernel %s: %d registers of 32 bits, %d of 64, %d predicates; %d bytes of local, %d of shared memory\n",
		p.Name, p.Regs32, p.Regs64, p.Preds, p.LocalBytes, p.SharedBytes)
	for _, line := range p.fixedRegisters() {
		b.WriteString(line)
	}
	for i := range p.Blocks {
		p.writeBlock(&b, i)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fixedRegisters returns lines for the registers that no instruction writes.
func (p *Program) fixedRegisters() (lines []string) {
	for slot, v := range p.Const32 {
		lines = append(lines, fmt.Sprintf("  %s = %#x\n", Ref{Class32, slot}, v))
	}
	for slot, v := range p.Const64 {
		lines = append(lines, fmt.Sprintf("  %s = %#x\n", Ref{Class64, slot}, v))
	}
	for name, slot := range p.Specials {
		lines = append(lines, fmt.Sprintf("  %s = %s\n", Ref{Class32, slot}, name))
	}
	slices.Sort(lines)
	return lines
}

func (p *Program) writeBlock(b *strings.Builder, number int) {
	block := &p.Blocks[number]
	fmt.Fprintf(b, "b%d:", number)
	if number == p.Entry {
		b.WriteString(" // entry")
	}
	b.WriteString("\n")
	if block.Sync != nil {
		writeLine(b, opText(block.Sync), block.SyncAt)
	}
	for i := range block.Insts {
		in := &block.Insts[i]
		text := opText(in.Op)
		if in.Guard != nil {
			text = fmt.Sprintf("@%s%s ", map[bool]string{true: "!"}[in.Guard.Not], in.Guard.Ref()) + text
		}
		writeLine(b, text, in.At)
	}
	text := block.End.Name()
	if r := block.End.Source(); r != None {
		text += " " + r.String()
	}
	writeLine(b, text, block.EndAt)
}

func opText(o Op) string {
	results, sources := o.Registers()
	text := o.Name()
	if len(results) > 0 {
		text = list(results) + " = " + text
	}
	if len(sources) > 0 {
		text += " " + list(sources)
	}
	return text
}

func list(refs []Ref) string {
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}

func writeLine(b *strings.Builder, text string, at *Place) {
	if at == nil || at.Text == "" {
		fmt.Fprintf(b, "  %s\n", text)
		return
	}
	fmt.Fprintf(b, "  %-48s // %d: %s\n", text, at.Line, at.Text)
}
