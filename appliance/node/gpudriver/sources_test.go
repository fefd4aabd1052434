package gpudriver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdditions(t *testing.T) {
	for name, c := range map[string]struct {
		files         map[string]string
		list, stanzas string
	}{
		"of the medium": {map[string]string{"sources.list": "deb [signed-by=/k.gpg] http://deb.debian.org/debian trixie main non-free-firmware\n" +
			"deb [signed-by=/k.gpg] http://deb.debian.org/debian-security trixie-security main non-free-firmware\n"},
			"deb [signed-by=/k.gpg] http://deb.debian.org/debian trixie contrib non-free\ndeb [signed-by=/k.gpg] http://deb.debian.org/debian-security trixie-security contrib non-free\n", ""},
		"it has them":             {map[string]string{"a.list": "deb http://x/debian trixie main contrib non-free\n"}, "", ""},
		"it has them elsewhere":   {map[string]string{"a.list": "deb http://x/debian trixie main\n", "b.list": "deb http://x/debian trixie contrib non-free\n"}, "", ""},
		"one is missing":          {map[string]string{"a.list": "deb http://x/debian/ trixie main contrib # mine\n"}, "deb http://x/debian/ trixie non-free\n", ""},
		"somebody else's":         {map[string]string{"a.list": "deb http://download.example/linux trixie main\n"}, "", ""},
		"sources and a comment":   {map[string]string{"a.list": "deb-src http://x/debian trixie main\n# deb http://x/debian trixie main\ndeb [x http://x/debian\ndeb http://x/debian\n"}, "", ""},
		"a mirror without a main": {map[string]string{"a.list": "deb http://x/debian trixie non-free-firmware\n"}, "", ""},
		"stanzas": {map[string]string{"debian.sources": "# Debian\nTypes: deb deb-src\nURIs: http://deb.debian.org/debian\nSuites: trixie trixie-updates\nComponents: main\nSigned-By: /k.gpg\n\n" +
			"Types: deb\nEnabled: no\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n"},
			"", "Types: deb deb-src\nURIs: http://deb.debian.org/debian\nSuites: trixie trixie-updates\nSigned-By: /k.gpg\nComponents: contrib non-free\n\n"},
		"nothing": {nil, "", ""},
	} {
		list, stanzas := additions(c.files)
		if d := cmp.Diff([]string{c.list, c.stanzas}, []string{list, stanzas}); d != "" {
			t.Errorf("additions for %s: mismatch (-want +got):\n%s", name, d)
		}
	}
}
