package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestKinds checks that every kind has a row, and that no two share a path, a type or
// an ID prefix.
func TestKinds(t *testing.T) {
	seen := map[any]Kind{}
	once := func(k Kind, what any) {
		if was, ok := seen[what]; ok {
			t.Errorf("%s and %s both have %v", k, was, what)
		}
		seen[what] = k
	}
	for _, k := range kinds {
		once(k.Kind, "the name "+string(k.Kind))
		once(k.Kind, "the prefix "+k.IDPrefix)
		if (k.Type == nil) != (k.Path == "") || k.IDPrefix == "" {
			t.Errorf("kind %s has type %v, path %q and ID prefix %q; want a prefix, and a type exactly if it has a path", k.Kind, k.Type, k.Path, k.IDPrefix)
		}
		if k.Type == nil {
			continue
		}
		once(k.Kind, k.Type)
		once(k.Kind, "the path "+k.Path)
		if k.Type.Name() != string(k.Kind) {
			t.Errorf("kind %s has type %v, want one of the same name", k.Kind, k.Type)
		}
		for _, field := range []string{"Kind", "Meta", "Spec"} {
			if _, ok := k.Type.FieldByName(field); !ok {
				t.Errorf("type %v has no field %s", k.Type, field)
			}
		}
		if k.KeyScope != "" && !slices.Contains(Scopes(), k.KeyScope+":read") {
			t.Errorf("kind %s: API keys have no scope %s:read", k.Kind, k.KeyScope)
		}
	}
	for _, name := range declaredKinds(t) {
		if _, ok := byKind[name]; !ok {
			t.Errorf("kind %s has no row", name)
		}
	}
}

// declaredKinds returns the constants of type Kind.
func declaredKinds(t *testing.T) (names []Kind) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := v.Type.(*ast.Ident); ok && of.Name == "Kind" {
			names = append(names, Kind(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)))
		}
		return true
	})
	if len(names) < 40 {
		t.Fatalf("found %d kinds in kinds.go, want at least 40", len(names))
	}
	return names
}

func TestKindOf(t *testing.T) {
	if got := KindOf[Flavor](); got != KindFlavor {
		t.Errorf("KindOf[Flavor]() = %s, want %s", got, KindFlavor)
	}
	f := Flavor{Meta: Meta{ID: "flv-1"}}
	MetaOf(&f).Name = "small"
	if want := (Flavor{Meta: Meta{ID: "flv-1", Name: "small"}}); !reflect.DeepEqual(f, want) {
		t.Errorf("flavor after MetaOf(&f).Name was set = %+v, want %+v", f, want)
	}
	if k, ok := KindOfID("ins-4f9c2a7be01d"); !ok || k != KindInstance {
		t.Errorf("KindOfID(ins-4f9c2a7be01d) = %s, %v; want %s", k, ok, KindInstance)
	}
	for _, id := range []string{"", "ins", "none-4f9c2a7be01d"} {
		if k, ok := KindOfID(id); ok {
			t.Errorf("KindOfID(%q) = %s, want none", id, k)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("KindOf[Meta]() did not panic, want a panic")
		}
	}()
	KindOf[Meta]()
}
