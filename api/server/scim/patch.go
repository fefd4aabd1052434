package scim

import (
	"encoding/json"
	"slices"
	"strings"

	filter "github.com/scim2/filter-parser/v2"
)

// operation is one operation of a patch (RFC 7644, section 3.5.2).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// readPatch decodes a patch. Entra capitalizes the operations ("Add").
func readPatch(raw []byte) ([]operation, error) {
	var in struct {
		Schemas    []string    `json:"schemas"`
		Operations []operation `json:"Operations"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, invalid(InvalidSyntax, "the body is not a patch")
	}
	if !slices.Contains(in.Schemas, patchSchema) {
		return nil, invalid(InvalidSyntax, "schemas must contain %s", patchSchema)
	}
	if n := len(in.Operations); n == 0 || n > maxOperations {
		return nil, invalid(InvalidSyntax, "has %d operations, want 1 to %d", n, maxOperations)
	}
	for i := range in.Operations {
		o := &in.Operations[i]
		if o.Op = strings.ToLower(o.Op); o.Op != "add" && o.Op != "remove" && o.Op != "replace" {
			return nil, invalid(InvalidSyntax, "operation %.16q is unknown, want add, remove or replace", o.Op)
		}
	}
	return in.Operations, nil
}

// PatchUser returns a user after a patch.
func PatchUser(raw []byte, u User) (User, error) {
	all, err := readPatch(raw)
	for _, o := range all {
		if err := apply(&u, o); err != nil {
			return u, err
		}
	}
	return u, err
}

// PatchGroup returns a group after a patch.
func PatchGroup(raw []byte, g Group) (Group, error) {
	all, err := readPatch(raw)
	g.Members = slices.Clone(g.Members)
	for _, o := range all {
		if err := apply(&g, o); err != nil {
			return g, err
		}
	}
	return g, err
}

// apply applies an operation. Without a path, its value is an object, whose names may be
// paths as well: Entra sends {"name.givenName": "Ann"}.
func apply(r resource, o operation) error {
	if strings.TrimSpace(o.Path) != "" {
		return applyAt(r, o.Op, o.Path, o.Value)
	}
	if o.Op == "remove" {
		return invalid(NoTarget, "remove needs a path")
	}
	m, ok := o.Value.(map[string]any)
	if !ok {
		return invalid(InvalidValue, "the value of an operation without a path must be an object")
	}
	for path, value := range m {
		if err := applyAt(r, o.Op, path, value); err != nil {
			return err
		}
	}
	return nil
}

func applyAt(r resource, op, path string, value any) error {
	if err := checkExpression(path, maxPath, InvalidPath); err != nil {
		return err
	}
	// The extensions of enterprises have attributes that Basalt does not store.
	if lower := strings.ToLower(path); strings.HasPrefix(lower, "urn:") && !strings.HasPrefix(lower, strings.ToLower(UserSchema)+":") && !strings.HasPrefix(lower, strings.ToLower(GroupSchema)+":") {
		return nil
	}
	p, err := filter.ParsePath([]byte(path))
	if err != nil {
		return invalid(InvalidPath, "path %.128q is not valid", path)
	}
	attribute, sub, _ := strings.Cut(nameOf("", p.AttributePath), ".")
	if p.SubAttribute != nil {
		sub = strings.ToLower(*p.SubAttribute)
	}
	if g, ok := r.(*Group); ok && attribute == "members" {
		return g.patchMembers(op, p.ValueExpression, sub, value)
	}
	if op == "remove" {
		if attribute == "active" || attribute == "username" {
			return invalid(Mutability, "%s cannot be removed", attribute)
		}
		value = nil
	}
	return r.set(attribute, sub, value)
}

// patchMembers changes the members. Entra removes with a value instead of a filter.
func (g *Group) patchMembers(op string, which filter.Expression, sub string, value any) error {
	if sub != "" && sub != "value" {
		return invalid(InvalidPath, "members.%.64s cannot be changed", sub)
	}
	given, err := memberIDs(value)
	switch {
	case err != nil:
		return err
	case which != nil && op != "remove":
		return invalid(InvalidPath, "%s of members with a filter is not supported", op)
	case op == "replace":
		g.Members = given
	case op == "add":
		g.Members = append(g.Members, given...)
		slices.Sort(g.Members)
		g.Members = slices.Compact(g.Members)
	case which != nil:
		return g.removeMatching(which)
	case value == nil:
		g.Members = nil
	default:
		g.Members = slices.DeleteFunc(g.Members, func(id string) bool {
			_, found := slices.BinarySearch(given, id)
			return found
		})
	}
	return nil
}

func (g *Group) removeMatching(which filter.Expression) error {
	var kept []string
	if _, err := match(which, "members", &Group{}); err != nil {
		return &Error{400, InvalidPath, err.Error()}
	}
	for _, id := range g.Members {
		if ok, err := match(which, "members", &Group{Members: []string{id}}); err != nil || !ok {
			kept = append(kept, id)
		}
	}
	g.Members = kept
	return nil
}
