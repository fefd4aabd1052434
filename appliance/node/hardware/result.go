package hardware

import (
	"strings"
	"unicode"

	"github.com/basalt-gpu/basalt/api"
)

// maxText limits each text of a check, in bytes: every report of a node contains
// them.
const maxText = 320

func ok(id api.HardwareCheckID, found string) api.HardwareCheck {
	return api.HardwareCheck{ID: id, State: api.HardwareOK, Found: found}
}

func warning(id api.HardwareCheckID, found, meaning, advice string) api.HardwareCheck {
	return api.HardwareCheck{ID: id, State: api.HardwareWarning, Found: found, Meaning: meaning, Advice: advice}
}

func failed(id api.HardwareCheckID, found, meaning, advice string) api.HardwareCheck {
	return api.HardwareCheck{ID: id, State: api.HardwareFailed, Found: found, Meaning: meaning, Advice: advice}
}

func unknown(id api.HardwareCheckID, found, advice string) api.HardwareCheck {
	return api.HardwareCheck{ID: id, State: api.HardwareUnknown, Found: found, Advice: advice}
}

// bounded returns the check with texts of at most maxText bytes without control
// characters.
func bounded(c api.HardwareCheck) api.HardwareCheck {
	c.Found, c.Meaning, c.Advice = clean(c.Found, maxText), clean(c.Meaning, maxText), clean(c.Advice, maxText)
	return c
}

// clean returns s as valid UTF-8 in one line of printable characters, of at most
// most bytes.
func clean(s string, most int) string {
	if len(s) > 4*most { // what is cut off need not be processed
		s = s[:4*most]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == unicode.ReplacementChar:
			return '?'
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= most {
		return s
	}
	s = s[:most-len("…")]
	return strings.ToValidUTF8(s, "") + "…"
}

// few joins at most four of the words, with an ellipsis for the others.
func few(words []string) string {
	const most = 4
	if len(words) > most {
		words = append(words[:most:most], "…")
	}
	return strings.Join(words, "; ")
}
