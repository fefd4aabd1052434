package scim

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

var ann = User{Meta: Meta{ID: "usr-1", ExternalID: "X1"}, UserName: "ann@example.com", DisplayName: "Ann", GivenName: "Ann", FamilyName: "Lee", Active: true}

func TestFilter(t *testing.T) {
	for text, want := range map[string]bool{
		`userName eq "ANN@example.com"`: true, `userName ne "ann@example.com"`: false, `externalId eq "x1"`: false, `externalId eq "X1"`: true,
		`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ann@example.com"`: true,
		`userName sw "ann" and active eq true`:                                     true, `userName eq "b" or displayName co "nn"`: true,
		`not (active eq true)`: false, `name.familyName pr`: true, `emails[type eq "work" and value ew "@example.com"]`: true,
		`emails[type eq "home"]`: false, `externalId eq null`: false, `title eq "x"`: false,
	} {
		f, err := UserFilter(text)
		if err != nil {
			t.Errorf("filter %s: %v, want no error", text, err)
			continue
		}
		if got := f.SelectsUser(ann); got != want {
			t.Errorf("filter %s selects ann: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{`userName`, `userName eq`, `userName gt "a"`, `secret eq "x"`, `members eq "x"`, strings.Repeat("(", 20) + `active eq true` + strings.Repeat(")", 20),
		`active eq true` + strings.Repeat(` and active eq true`, 40)} {
		var e *Error
		if _, err := UserFilter(text); !errors.As(err, &e) || e.Status != 400 || e.Type != InvalidFilter {
			t.Errorf("filter %.60s: %v, want a 400 of type %s", text, err, InvalidFilter)
		}
	}
	f, _ := UserFilter(`active eq true and userName eq "Ann@example.com"`)
	if v, ok := f.Equal("userName"); !ok || v != "Ann@example.com" {
		t.Errorf("Equal(userName) = %q, %v; want the address", v, ok)
	}
	f, _ = UserFilter(`active eq true or userName eq "a"`)
	if v, ok := f.Equal("userName"); ok {
		t.Errorf("Equal(userName) of a disjunction = %q, want none", v)
	}
}

// TestNestedFilters parses filters as nested as allowed: a parser that takes exponential
// time would not end.
func TestNestedFilters(t *testing.T) {
	for _, open := range []string{"not (", "("} {
		text := strings.Repeat(open, maxNested) + `userName eq "a"` + strings.Repeat(")", maxNested)
		if _, err := UserFilter(text); err != nil {
			t.Errorf("filter %s: %v, want no error", text, err)
		}
	}
}

func TestPatchGroup(t *testing.T) {
	was := Group{Meta: Meta{ID: "grp-1"}, DisplayName: "G", Members: []string{"a", "b", "c"}}
	for ops, want := range map[string][]string{
		`{"op":"add","path":"members","value":[{"value":"d"},{"value":"a"}]}`: {"a", "b", "c", "d"},
		`{"op":"Add","value":{"members":[{"value":"d"}]}}`:                    {"a", "b", "c", "d"},
		`{"op":"replace","path":"members","value":[{"value":"z"}]}`:           {"z"},
		`{"op":"replace","path":"members","value":[]}`:                        nil,
		`{"op":"remove","path":"members"}`:                                    nil,
		`{"op":"remove","path":"members[value eq \"b\"]"}`:                    {"a", "c"},
		`{"op":"remove","path":"members[value eq \"b\" or value eq \"c\"]"}`:  {"a"},
		`{"op":"Remove","path":"members","value":[{"value":"a"}]}`:            {"b", "c"},
		`{"op":"remove","path":"members","value":{"value":"a"}}`:              {"b", "c"},
		`{"op":"replace","path":"displayName","value":"H"}`:                   {"a", "b", "c"},
	} {
		g, err := PatchGroup([]byte(`{"schemas":["`+patchSchema+`"],"Operations":[`+ops+`]}`), was)
		if err != nil || !slices.Equal(g.Members, want) {
			t.Errorf("members after %s = %v, %v; want %v", ops, g.Members, err, want)
		}
	}
	if !slices.Equal(was.Members, []string{"a", "b", "c"}) {
		t.Errorf("a patch has changed the members that it was given: %v", was.Members)
	}
	for ops, typ := range map[string]string{
		`{"op":"remove"}`: NoTarget, `{"op":"move"}`: InvalidSyntax, `{"op":"add","path":"owner","value":"x"}`: InvalidPath, `{"op":"add","path":"members[","value":"x"}`: InvalidPath,
		`{"op":"add","value":"x"}`: InvalidValue, `{"op":"add","path":"members","value":["x"]}`: InvalidValue, `{"op":"replace","path":"displayName","value":""}`: InvalidValue,
		`{"op":"remove","path":"members[password eq \"b\"]"}`: InvalidPath,
	} {
		var e *Error
		if _, err := PatchGroup([]byte(`{"schemas":["`+patchSchema+`"],"Operations":[`+ops+`]}`), was); !errors.As(err, &e) || e.Type != typ {
			t.Errorf("patch %s: %v, want type %s", ops, err, typ)
		}
	}
}

// FuzzFilter checks that filters are decoded or refused with an error of SCIM, and that a
// lookup by a name finds whatever the filter selects.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{`userName eq "ann@example.com"`, `emails[type eq "work" and value eq "x"]`, `not (active eq true) or externalId eq null`, `((((`, `a eq -1.5e9`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (*Filter, error){UserFilter, GroupFilter} {
			got, err := parse(text)
			var e *Error
			if err != nil {
				if !errors.As(err, &e) || e.Status != 400 {
					t.Fatalf("filter %q: error %v, want a 400", text, err)
				}
				continue
			}
			if v, ok := got.Equal("userName"); ok && got.SelectsUser(ann) && !strings.EqualFold(v, ann.UserName) {
				t.Fatalf("filter %q selects %s, but not by its name %q", text, ann.UserName, v)
			}
			got.SelectsGroup(Group{Members: []string{"a"}})
		}
	})
}

// FuzzPatch checks that patches are applied or refused with an error of SCIM, do not change
// what the server decides, and that the result can be encoded.
func FuzzPatch(f *testing.F) {
	for _, ops := range []string{`{"op":"Replace","path":"active","value":"False"}`, `{"op":"add","path":"members","value":[{"value":"x"}]}`, `{"op":"remove","path":"members[value eq \"a\"]"}`,
		`{"op":"replace","value":{"name.givenName":"A","id":"usr-2","meta":{}}}`, `{"op":"add","path":"urn:x:y","value":null}`} {
		f.Add([]byte(`{"schemas":["` + patchSchema + `"],"Operations":[` + ops + `]}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var e *Error
		u, err := PatchUser(raw, ann)
		if err != nil && (!errors.As(err, &e) || e.Status != 400) {
			t.Fatalf("patch of a user %q: error %v, want a 400", raw, err)
		}
		if err == nil && (u.ID != ann.ID || u.UserName == "") {
			t.Fatalf("patch %q changes the user to %+v, want the same ID and a userName", raw, u)
		}
		g, err := PatchGroup(raw, Group{Meta: Meta{ID: "grp-1"}, DisplayName: "G", Members: []string{"a"}})
		if err != nil && (!errors.As(err, &e) || e.Status != 400) {
			t.Fatalf("patch of a group %q: error %v, want a 400", raw, err)
		}
		if err == nil && (g.ID != "grp-1" || g.DisplayName == "" || !slices.IsSorted(g.Members)) {
			t.Fatalf("patch %q changes the group to %+v, want the same ID, a name and sorted members", raw, g)
		}
		for _, m := range []map[string]any{(Selection{}).User(u), (Selection{}).Group(g)} {
			if _, err := json.Marshal(m); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadUser(raw, User{}); err != nil && !errors.As(err, &e) {
			t.Fatalf("body of a user %q: error %v, want one of SCIM", raw, err)
		}
		if _, err := ReadGroup(raw, Group{}); err != nil && !errors.As(err, &e) {
			t.Fatalf("body of a group %q: error %v, want one of SCIM", raw, err)
		}
	})
}
