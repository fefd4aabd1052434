package gpudriver

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// nonFree are the sections that the driver's packages are in.
var nonFree = []string{"contrib", "non-free"}

// entry is an entry of apt's sources: a line of a .list file, or a stanza of a .sources
// file (sources.list(5)).
type entry struct {
	text       string // without components
	components []string
	stanza     bool
	debian     bool // an archive of Debian, not one of somebody else's packages
}

// isDebian reports whether an address is of an archive of Debian: its mirrors keep the
// names of its folders.
func isDebian(address string) bool {
	base := path.Base(strings.TrimRight(address, "/"))
	return base == "debian" || base == "debian-security"
}

// listEntries returns the entries of a .list file.
func listEntries(text string) (all []entry) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		options, place := "", strings.TrimSpace(rest)
		if strings.HasPrefix(place, "[") {
			end := strings.Index(place, "]")
			if end < 0 {
				continue
			}
			options, place = place[:end+1]+" ", place[end+1:]
		}
		f := strings.Fields(place)
		if len(f) < 3 {
			continue
		}
		all = append(all, entry{text: "deb " + options + f[0] + " " + f[1], components: f[2:], debian: isDebian(f[0])})
	}
	return all
}

// stanzaEntries returns the entries of a .sources file.
func stanzaEntries(text string) (all []entry) {
	for _, stanza := range strings.Split(strings.ReplaceAll(text, "\r", ""), "\n\n") {
		e := entry{stanza: true}
		types, enabled := "", true
		for line := range strings.Lines(stanza) {
			name, value, _ := strings.Cut(line, ":")
			switch strings.ToLower(name) {
			case "components":
				e.components = strings.Fields(value)
				continue
			case "types":
				types = value
			case "uris":
				e.debian = slices.ContainsFunc(strings.Fields(value), isDebian)
			case "enabled":
				enabled = strings.TrimSpace(value) != "no"
			}
			if !strings.HasPrefix(line, "#") {
				e.text += strings.TrimRight(line, "\n") + "\n"
			}
		}
		if enabled && slices.Contains(strings.Fields(types), "deb") {
			all = append(all, e)
		}
	}
	return all
}

// lacking returns the components of nonFree that no entry has which begins in the same way.
func lacking(e entry, all []entry) (components []string) {
	for _, c := range nonFree {
		if !slices.ContainsFunc(all, func(o entry) bool { return o.text == e.text && slices.Contains(o.components, c) }) {
			components = append(components, c)
		}
	}
	return components
}

// additions returns the content of a .list and of a .sources file that add nonFree to
// Debian's archives in the files, by their names. Both are empty if no archive lacks them.
func additions(files map[string]string) (list, stanzas string) {
	var all []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".sources") {
			all = append(all, stanzaEntries(files[name])...)
		} else {
			all = append(all, listEntries(files[name])...)
		}
	}
	for _, e := range all {
		c := lacking(e, all)
		switch {
		case len(c) == 0 || !e.debian || !slices.Contains(e.components, "main"):
		case e.stanza:
			stanzas += e.text + "Components: " + strings.Join(c, " ") + "\n\n"
		default:
			list += e.text + " " + strings.Join(c, " ") + "\n"
		}
	}
	return list, stanzas
}
