package ptx

import "strings"

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // names, opcodes with their modifiers, directives
	tokNumber           // 12, 0x1F, 0f3F800000, 1.5e-3
	tokString
	tokPunct // a single character
)

type token struct {
	kind tokenKind
	text string
	pos  int
	line int
}

// lexer splits PTX source (PTX ISA, "Syntax") into tokens. Opcodes keep their
// modifiers ("ld.global.v4.f32" is one word).
type lexer struct {
	src  string
	pos  int
	line int
}

func wordStart(c byte) bool {
	return c == '.' || c == '_' || c == '$' || c == '%' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) skip() error {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case c == '\n':
			l.line++
			l.pos++
		case c == ' ' || c == '\t' || c == '\r' || c == 0 && l.pos == len(l.src)-1:
			l.pos++
		case strings.HasPrefix(l.src[l.pos:], "//"):
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
		case strings.HasPrefix(l.src[l.pos:], "/*"):
			end := strings.Index(l.src[l.pos+2:], "*/")
			if end < 0 {
				return &Error{Line: l.line, Msg: "comment without end"}
			}
			l.line += strings.Count(l.src[l.pos:l.pos+2+end], "\n")
			l.pos += end + 4
		default:
			return nil
		}
	}
	return nil
}

// skipToBrace skips everything up to and including the next brace that is not in
// a comment or a string, and returns that brace, or 0 at the end.
func (l *lexer) skipToBrace() (byte, error) {
	for ; l.pos < len(l.src); l.pos++ {
		switch c := l.src[l.pos]; c {
		case '\n':
			l.line++
		case '{', '}':
			l.pos++
			return c, nil
		case '"':
			end := strings.IndexAny(l.src[l.pos+1:], "\"\n")
			if end < 0 || l.src[l.pos+1+end] != '"' {
				return 0, &Error{Line: l.line, Msg: "string without end"}
			}
			l.pos += end + 1
		case '/':
			if rest := l.src[l.pos:]; !strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "/*") {
				continue
			}
			if err := l.skip(); err != nil {
				return 0, err
			}
			l.pos-- // undone by the loop's increment
		}
	}
	return 0, nil
}

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	start := l.pos
	t := token{pos: start, line: l.line}
	if start >= len(l.src) {
		return t, nil
	}
	c := l.src[start]
	switch {
	case digit(c):
		t.kind = tokNumber
		l.number()
	case wordStart(c):
		t.kind = tokWord
		l.word()
	case c == '"':
		t.kind = tokString
		end := strings.IndexAny(l.src[start+1:], "\"\n")
		if end < 0 || l.src[start+1+end] != '"' {
			return t, &Error{Line: l.line, Msg: "string without end"}
		}
		l.pos = start + end + 2
		t.text = l.src[start+1 : start+1+end]
		return t, nil
	case strings.IndexByte(",;:{}[]()@!+-=<>|*~&^/", c) >= 0:
		t.kind = tokPunct
		l.pos++
	default:
		return t, &Error{Line: l.line, Msg: "unexpected character " + quoteByte(c)}
	}
	t.text = l.src[start:l.pos]
	return t, nil
}

func quoteByte(c byte) string {
	const hex = "0123456789abcdef"
	if c > 32 && c < 127 {
		return "'" + string(rune(c)) + "'"
	}
	return "0x" + string(hex[c>>4]) + string(hex[c&15])
}

// word scans a name. Directives may follow each other without a space (".reg.b16
// h;"), so one ends where the next begins.
func (l *lexer) word() {
	directive := l.src[l.pos] == '.'
	for l.pos++; l.pos < len(l.src); l.pos++ {
		c := l.src[l.pos]
		if c == '.' && directive {
			return
		}
		if wordStart(c) || digit(c) {
			continue
		}
		// "L2::128B" is one modifier; a single colon ends a label.
		if c == ':' && strings.HasPrefix(l.src[l.pos:], "::") {
			l.pos++
			continue
		}
		return
	}
}

func (l *lexer) number() {
	hex := strings.HasPrefix(l.src[l.pos:], "0x") || strings.HasPrefix(l.src[l.pos:], "0X") ||
		strings.HasPrefix(l.src[l.pos:], "0f") || strings.HasPrefix(l.src[l.pos:], "0F") ||
		strings.HasPrefix(l.src[l.pos:], "0d") || strings.HasPrefix(l.src[l.pos:], "0D")
	for l.pos++; l.pos < len(l.src); l.pos++ {
		c := l.src[l.pos]
		if digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' && !hex {
			continue
		}
		prev := l.src[l.pos-1]
		if (c == '+' || c == '-') && !hex && (prev == 'e' || prev == 'E') {
			continue
		}
		return
	}
}
