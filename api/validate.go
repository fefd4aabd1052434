package api

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// Limits that apply to every object.
const (
	maxLabels     = 64
	maxLabelBytes = 256
	maxTextBytes  = 256
)

var (
	namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	idPattern   = regexp.MustCompile(`^[a-z]+-[0-9a-f]{12}$`)
)

// NewID returns an ID of a kind, made of the first 6 bytes of random.
func NewID(kind Kind, random []byte) string {
	return kind.Info().IDPrefix + "-" + hex.EncodeToString(random[:6])
}

// RandomID returns a new random ID of a kind.
func RandomID(kind Kind) string {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never returns an error: it aborts the process instead
	return NewID(kind, random[:])
}

// LooksLikeID reports whether s has the form of an ID, which names must not have.
func LooksLikeID(s string) bool { return idPattern.MatchString(s) }

func invalid(field, format string, args ...any) *Error {
	return Errorf(CodeInvalid, format, args...).At(field)
}

// ValidateName checks an object's name.
func ValidateName(name string) error {
	switch {
	case name == "":
		return invalid("meta.name", "a name is required")
	case !namePattern.MatchString(name):
		return invalid("meta.name", "%q is not a valid name", clip(name)).
			WithHint("1 to 63 of a-z, 0-9 and '-', beginning and ending with a letter or digit")
	case LooksLikeID(name):
		return invalid("meta.name", "%q looks like an ID", name).WithHint("choose a name of a different form")
	}
	return nil
}

// ValidateLabels checks an object's labels.
func ValidateLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return invalid("meta.labels", "must have at most %d labels", maxLabels)
	}
	for k, v := range labels {
		if k == "" || len(k) > maxLabelBytes || len(v) > maxLabelBytes || hasControl(k) || hasControl(v) {
			return invalid("meta.labels", "label %q: keys are 1 to %d bytes, values at most %d, without control characters",
				clip(k), maxLabelBytes, maxLabelBytes)
		}
	}
	return nil
}

// text checks a single line of text for people.
func text(field, s string) *Error {
	if len(s) > maxTextBytes || hasControl(s) {
		return invalid(field, "must have at most %d bytes and no control characters", maxTextBytes)
	}
	return nil
}

func oneOf[T ~string](field string, got T, want ...T) *Error {
	words := make([]string, len(want))
	for i, w := range want {
		if got == w {
			return nil
		}
		words[i] = string(w)
	}
	return invalid(field, "unknown value %q", clip(string(got))).WithHint("want one of: %s", strings.Join(words, ", "))
}

// bytesUnit is the unit with which between describes sizes.
const bytesUnit = " bytes"

func between(field string, got, least, most int64, unit string) *Error {
	if (got < least || got > most) && unit == bytesUnit {
		return invalid(field, "out of range: got %s, want %s to %s", sizeText(got), sizeText(least), sizeText(most))
	}
	if got < least || got > most {
		return invalid(field, "out of range: got %d, want %d to %d%s", got, least, most, unit)
	}
	return nil
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// clip shortens user input for a message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// sizeText formats a size for a message, in the largest binary unit that gives a whole
// number.
func sizeText(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
