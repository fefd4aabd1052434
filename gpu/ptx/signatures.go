package ptx

import "fmt"

// Signature is the information about a kernel that a launch needs.
type Signature struct {
	Name   string
	Params []ParamLayout
	Line   int
}

// ParamLayout is one parameter in the parameter space, in bytes.
type ParamLayout struct{ Offset, Size uint32 }

// Signatures lists the kernels that a module defines, in order, without examining
// their instructions: a real driver may support more than this package.
func Signatures(src string) ([]Signature, error) {
	if len(src) > MaxSource {
		return nil, &Error{Line: 1, Msg: fmt.Sprintf("the source has %d bytes, want at most %d", len(src), MaxSource)}
	}
	p := &parser{lex: lexer{src: src, line: 1}, budget: newBudget(len(src))}
	var list []Signature
	seen := map[string]bool{}
	for {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.tok.kind == tokEOF {
			return list, nil
		}
		if p.is("{") {
			if _, err := p.skipBraces(); err != nil {
				return nil, err
			}
			continue
		}
		if p.tok.kind != tokWord || p.tok.text != ".entry" {
			continue
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		sig := Signature{Line: p.tok.line}
		s := &funcState{f: &Func{}, cur: -1}
		s.push()
		var err error
		if sig.Name, err = p.word(); err != nil {
			return nil, err
		}
		if p.is("(") {
			if s.f.Params, err = p.params(s); err != nil {
				return nil, err
			}
		}
		if err := layoutParams(s.f); err != nil {
			return nil, err
		}
		for _, v := range s.f.Params {
			sig.Params = append(sig.Params, ParamLayout{Offset: v.Offset, Size: uint32(v.Size)})
		}
		if !seen[sig.Name] {
			seen[sig.Name] = true
			list = append(list, sig)
		}
		if len(list) > MaxFunctions {
			return nil, p.errorf("the module has more than %d functions", MaxFunctions)
		}
	}
}
