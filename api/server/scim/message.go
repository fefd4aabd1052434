package scim

import (
	"maps"
	"slices"
	"strings"
)

// Selection is which attributes of resources a client wants: all, only some, or all except
// some. The ID is always there.
type Selection struct{ only, except []string }

// NewSelection returns the selection of the query parameters attributes and
// excludedAttributes. It selects top-level attributes only.
func NewSelection(attributes, excluded string) Selection {
	return Selection{names(attributes), names(excluded)}
}

func names(list string) (out []string) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if i := strings.LastIndexByte(name, ':'); i >= 0 {
			name = name[i+1:]
		}
		if name, _, _ = strings.Cut(name, "."); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func (s Selection) of(m map[string]any) map[string]any {
	maps.DeleteFunc(m, func(name string, _ any) bool {
		lower := strings.ToLower(name)
		if lower == "id" || lower == "schemas" {
			return false
		}
		return len(s.only) > 0 && !slices.Contains(s.only, lower) || slices.Contains(s.except, lower)
	})
	return m
}

// User returns the document of a user.
func (s Selection) User(u User) map[string]any { return s.of(u.document()) }

// Group returns the document of a group.
func (s Selection) Group(g Group) map[string]any { return s.of(g.document()) }

// List returns the message of a page that begins with the resource at start, counted from
// 1.
func List(resources []map[string]any, total, start int) map[string]any {
	if resources == nil {
		resources = []map[string]any{}
	}
	return map[string]any{"schemas": []string{listSchema}, "totalResults": total, "startIndex": start, "itemsPerPage": len(resources), "Resources": resources}
}
