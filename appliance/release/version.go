package release

import (
	"cmp"
	"regexp"
	"strings"
)

// versionForm matches the version of a Debian package (deb-version(7)), limited to
// sensible lengths.
var versionForm = regexp.MustCompile(`^([0-9]{1,9}:)?[0-9][0-9A-Za-z.+~:-]{0,127}$`)

// ValidVersion reports whether s can be the version of a Debian package.
func ValidVersion(s string) bool { return versionForm.MatchString(s) }

// Compare orders versions as dpkg does (deb-version(7)): -1 where a is older than b.
func Compare(a, b string) int {
	ea, ua, ra := split(a)
	eb, ub, rb := split(b)
	return cmp.Or(number(ea, eb), part(ua, ub), part(ra, rb))
}

// split splits a version into epoch, upstream version and revision.
func split(v string) (epoch, upstream, revision string) {
	if e, rest, ok := strings.Cut(v, ":"); ok {
		epoch, v = e, rest
	}
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return epoch, v[:i], v[i+1:]
	}
	return epoch, v, ""
}

// part compares runs of non-digits and runs of digits alternately.
func part(a, b string) int {
	for a != "" || b != "" {
		wa, wb := span(a, false), span(b, false)
		if c := words(a[:wa], b[:wb]); c != 0 {
			return c
		}
		a, b = a[wa:], b[wb:]
		da, db := span(a, true), span(b, true)
		if c := number(a[:da], b[:db]); c != 0 {
			return c
		}
		a, b = a[da:], b[db:]
	}
	return 0
}

// span returns how many bytes at the start of s are digits, or are not digits.
func span(s string, digits bool) int {
	for i := range len(s) {
		if (s[i] >= '0' && s[i] <= '9') != digits {
			return i
		}
	}
	return len(s)
}

func number(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// words compares runs of non-digits: '~' sorts before the end, the end before letters,
// letters before the rest.
func words(a, b string) int {
	for i := range max(len(a), len(b)) {
		if c := cmp.Compare(order(a, i), order(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

func order(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z':
		return int(s[i])
	}
	return int(s[i]) + 256
}
