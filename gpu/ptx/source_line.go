package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// SourceLine is the line of the program that an instruction was compiled from (PTX
// ISA, "Debugging Directives"); line 0 if the PTX has no line information.
type SourceLine struct {
	files      *files
	file, line uint32
}

// files are a module's .file directives, which may follow those that refer to
// them.
type files struct{ names map[uint32]string }

const (
	maxFiles = 4096
	costFile = 128
)

// Known reports whether the PTX has the line.
func (s SourceLine) Known() bool { return s.line != 0 }

// String returns an empty string if the line is not known.
func (s SourceLine) String() string {
	if !s.Known() {
		return ""
	}
	name := fmt.Sprintf("file %d", s.file)
	if known := s.files.names[s.file]; known != "" {
		name = known
	}
	return name + ":" + strconv.Itoa(int(s.line))
}

// loc parses ".loc FILE LINE COLUMN …" after its first word. Invalid or unknown
// values are ignored.
func (p *parser) loc() error {
	line := p.tok.line
	var n [2]uint32
	for i := range n {
		if p.tok.kind != tokNumber || p.tok.line != line {
			return p.skipFrom(line)
		}
		v, err := strconv.ParseUint(p.tok.text, 10, 32)
		if err != nil {
			return p.skipFrom(line)
		}
		n[i] = uint32(v)
		if err := p.advance(); err != nil {
			return err
		}
	}
	p.source = SourceLine{p.files, n[0], n[1]}
	return p.skipFrom(line)
}

// file parses ".file NUMBER "NAME" …" after its first word.
func (p *parser) file() error {
	line := p.tok.line
	number, err := strconv.ParseUint(p.tok.text, 10, 32)
	if p.tok.kind != tokNumber || err != nil {
		return p.skipFrom(line)
	}
	if err := p.advance(); err != nil {
		return err
	}
	if p.tok.kind == tokString && p.tok.line == line && len(p.files.names) < maxFiles {
		if err := p.charge(costFile + uint64(len(p.tok.text))); err != nil {
			return err
		}
		if p.files.names == nil {
			p.files.names = map[uint32]string{}
		}
		p.files.names[uint32(number)] = strings.Clone(p.tok.text)
	}
	return p.skipFrom(line)
}

// skipFrom skips the rest of a line.
func (p *parser) skipFrom(line int) error {
	for p.tok.kind != tokEOF && p.tok.line == line {
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}
